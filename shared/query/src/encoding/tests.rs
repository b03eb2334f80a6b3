use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{decode, encode, take};
use crate::{Answer, Query, Summary};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Choice {
    Plain,
    One(u32),
    Two(i64, String),
    Named { text: String, number: Option<f64> },
}

type Numbers = ((bool, u8, u16, u32, u64, u128, usize), (i8, i16, i32, i64), (f32, f64));

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Sample {
    numbers: Numbers,
    texts: Vec<String>,
    choices: Vec<Choice>,
    bytes: serde_bytes::ByteBuf,
    nested: Option<Box<Sample>>,
    result: Result<[u16; 3], String>,
    unit: (Unit, ()),
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        Just(Choice::Plain),
        any::<u32>().prop_map(Choice::One),
        (any::<i64>(), ".{0,9}").prop_map(|(number, text)| Choice::Two(number, text)),
        (".{0,9}", any::<Option<i32>>())
            .prop_map(|(text, number)| Choice::Named { text, number: number.map(f64::from) }),
    ]
}

fn flat() -> impl Strategy<Value = Sample> {
    let numbers =
        (any::<(bool, u8, u16, u32, u64, u128, usize)>(), any::<(i8, i16, i32, i64)>(), (-1e9_f32..1e9, -1e9..1e9));
    let few = 0..4;
    let texts = prop::collection::vec(".{0,9}", few.clone());
    let lists = (texts, prop::collection::vec(choice(), few), prop::collection::vec(any::<u8>(), 0..99));
    (numbers, lists, prop::result::maybe_ok(any::<[u16; 3]>(), ".{0,9}")).prop_map(
        |(numbers, (texts, choices, bytes), result)| Sample {
            numbers,
            texts,
            choices,
            bytes: bytes.into(),
            nested: None,
            result,
            unit: (Unit, ()),
        },
    )
}

fn sample() -> impl Strategy<Value = Sample> {
    (flat(), prop::option::of(flat())).prop_map(|(outer, inner)| Sample { nested: inner.map(Box::new), ..outer })
}

proptest! {
    #[test]
    fn bytes_are_those_of_postcard(sample in sample()) {
        let bytes = encode(&sample);
        prop_assert_eq!(&bytes, &postcard::to_allocvec(&sample).unwrap());
        prop_assert_eq!(decode::<Sample>(&bytes), Some(sample));
    }

    #[test]
    fn cut_off_bytes_are_no_value(sample in sample(), part in 0.0..1.0) {
        let bytes = encode(&sample);
        let kept = (bytes.len() as f64 * part) as usize;
        prop_assert_eq!(decode::<Sample>(&bytes[..kept]), None);
    }

    #[test]
    fn other_bytes_are_read_as_postcard_reads_them(bytes: Vec<u8>) {
        prop_assert_eq!(decode::<Sample>(&bytes), postcard::from_bytes(&bytes).ok());
        let _: (Option<Answer>, Option<Query>, Option<Summary>) = (decode(&bytes), decode(&bytes), decode(&bytes));
    }

    #[test]
    fn changed_bytes_are_read_as_postcard_reads_them(sample in sample(), place: prop::sample::Index, byte: u8) {
        let mut bytes = encode(&sample);
        *place.get_mut(&mut bytes) = byte;
        // Compared as text: a number may have become none.
        let read = |sample: Option<Sample>| format!("{sample:?}");
        prop_assert_eq!(read(decode(&bytes)), read(postcard::from_bytes(&bytes).ok()));
    }
}

#[test]
fn values_are_taken_one_after_the_other() {
    let bytes = [encode(&7_u32), encode("seven")].concat();
    let rest = &mut bytes.as_slice();
    assert_eq!((take::<u32>(rest), take::<&str>(rest), take::<u8>(rest)), (Some(7), Some("seven"), None));
}
