//! Names of lines, and short names of streams and private pools. Traces have handles and pairs of numbers, which are long and say
//! nothing, so a name has a number in the order of first use instead.

use std::borrow::Cow;

use trace::units::{PoolId, Stream};

/// The label of an allocation without a stack.
pub const NO_STACK: &str = "no stack recorded";
/// The label of an allocation whose stack was recorded, and lost with a damaged part of the file.
pub const LOST_STACK: &str = "stack lost to damage";

/// What separates function and location in the label of a line: `forward  models/gpt.py:54`.
const BETWEEN: &str = "  ";

/// Returns the location in the label of a line; all of a label that has none, as of a function without a file.
pub fn location_of(label: &str) -> &str {
    label.rsplit_once(BETWEEN).map_or(label, |(_, location)| location)
}

/// Returns the label of a line as a sentence has it: `models/gpt.py:54 (forward)`. With the function first, `append` would read as
/// the verb of that sentence.
pub fn line_in_sentence(label: &str) -> Cow<'_, str> {
    match label.rsplit_once(BETWEEN) {
        Some((function, location)) => format!("{location} ({function})").into(),
        None => label.into(),
    }
}

/// Stream numbers below this are not handles, and are shown as recorded.
const SHORT: i64 = 1000;

/// Returns the short name of a stream among `all` streams of its device: `default stream`, `stream 3`. Handles are numbered
/// from 1 in the order of first use.
pub fn stream_name(stream: Stream, all: &[Stream]) -> String {
    if stream == Stream::default() {
        return "default stream".to_owned();
    }
    let others = || all.iter().filter(|other| **other != Stream::default());
    let are_short = others().all(|other| (0..SHORT).contains(&other.0));
    let number = others().position(|other| *other == stream).filter(|_| !are_short);
    format!("stream {}", number.map_or(stream.0, |place| place as i64 + 1))
}

/// Returns the short name of a pool among `all` pools of its device: `default pool`, `pool 1`. Private pools are numbered
/// from 1 in the order of first use.
pub fn pool_name(pool: PoolId, all: &[PoolId]) -> String {
    if !pool.is_private() {
        return "default pool".to_owned();
    }
    match all.iter().filter(|other| other.is_private()).position(|other| *other == pool) {
        Some(place) => format!("pool {}", place + 1),
        None => format!("pool {pool}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_a_sentence_begins_with_its_location() {
        let cases = [
            ("append  gpt/evaluate.py:33", "gpt/evaluate.py:33 (append)", "gpt/evaluate.py:33"),
            ("operator  ()  a.cpp:1", "a.cpp:1 (operator  ())", "a.cpp:1"),
            ("cudaMalloc", "cudaMalloc", "cudaMalloc"),
            (NO_STACK, NO_STACK, NO_STACK),
            ("", "", ""),
        ];
        for (label, sentence, location) in cases {
            assert_eq!((&*line_in_sentence(label), location_of(label)), (sentence, location));
        }
    }

    #[test]
    fn handles_are_numbered_and_small_numbers_stay() {
        let small = [Stream(0), Stream(7), Stream(3)];
        let handles = [Stream(0), Stream(94_534_543), Stream(-3)];
        let names = |all: &[Stream]| all.iter().map(|stream| stream_name(*stream, all)).collect::<Vec<_>>();
        assert_eq!(names(&small), ["default stream", "stream 7", "stream 3"]);
        assert_eq!(names(&handles), ["default stream", "stream 1", "stream 2"]);
        assert_eq!(stream_name(Stream(5_000), &handles), "stream 5000");
    }

    #[test]
    fn private_pools_are_numbered() {
        let all = [PoolId(0, 0), PoolId(0, 4), PoolId(2, 0)];
        let names = all.map(|pool| pool_name(pool, &all));
        assert_eq!(names, ["default pool", "pool 1", "pool 2"]);
        assert_eq!(all.map(|pool| pool_name(pool, &all[1..])), names, "with or without the default pool");
        assert_eq!(pool_name(PoolId(9, 9), &all), "pool (9, 9)");
    }
}
