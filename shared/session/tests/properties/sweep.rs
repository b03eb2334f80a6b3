//! Documents of sweeps: the golden one, and hostile ones.

mod hostile;

use std::time::{Duration, Instant};

use self::hostile::read_and_show;
use format::import::{ImportError, Importer};
use format::sweep::{Largest, Sweep, SweepError, read};
use proptest::prelude::*;
use serde_json::{Value, json};
use trace::limits::{ImportLimits, SWEEP_BYTES, SWEEP_VALUES};

/// A document as the program wrote it: `vramscope sweep resnet-sweep batch=64..512 --card A100-40GB --out sweep_1.json`.
const GOLDEN: &str = include_str!("../fixtures/sweep_1.json");

/// Far more time than any document needs.
const LONG: Duration = Duration::from_secs(20);

/// Returns a document as the program writes it.
fn write(sweep: &Sweep) -> String {
    serde_json::to_string_pretty(&sweep.document()).unwrap() + "\n"
}

fn golden() -> Value {
    serde_json::from_str(GOLDEN).unwrap()
}

/// Returns what is said of the golden document after a change of it.
fn refused(name: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut document = golden();
    change(&mut document);
    let start = Instant::now();
    let error = read(document.to_string().as_bytes()).expect_err(name);
    assert!(start.elapsed() < LONG, "{name}");
    error.to_string()
}

#[test]
fn the_golden_document_is_read_and_written_the_same() {
    let sweep = read_and_show(GOLDEN.as_bytes()).unwrap();
    assert_eq!(write(&sweep), GOLDEN);
    let Some(Largest::Between { fits, fails }) = &sweep.largest else { panic!("{:?}", sweep.largest) };
    assert_eq!(fits.number().map(|number| number + 1), fails.number());
    // The order of fields, unknown fields and white space don't matter, but what comes first does.
    let mut later = golden();
    later["new"] = json!({"a": [1, null]});
    later["runs"][0]["new"] = json!(1.5);
    assert_eq!(read(later.to_string().as_bytes()), Ok(sweep.clone()));
    assert_eq!(read(format!("\u{feff}\n{GOLDEN}\n\n").as_bytes()), Ok(sweep));
}

#[test]
fn an_importer_tells_a_sweep_from_a_snapshot() {
    for piece in [1, 7, GOLDEN.len()] {
        let mut importer = Importer::new(ImportLimits::default());
        let mut done = 0;
        let refused = GOLDEN.as_bytes().chunks(piece).find_map(|piece| {
            done += piece.len();
            importer.push(piece).err()
        });
        let Some(ImportError::Sweep(head)) = refused else { panic!("{refused:?}") };
        assert_eq!(head, GOLDEN.as_bytes()[..done]);
    }
    // One that ends there is no sweep yet, and no snapshot either.
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(b"{\"format\": \"vrams").unwrap();
    assert!(importer.finish().is_err());
}

#[test]
fn a_newer_document_is_refused_by_its_version() {
    for (format, want) in [
        ("vramscope sweep 2", "The sweep is of format version 2; this program reads version 1. Update Vramscope."),
        ("vramscope sweep 4000", "format version 4,000"),
        ("vramscope sweep 0", "does not name the format of a sweep"),
        ("vramscope sweep x", "does not name the format of a sweep"),
        ("vramscope sweep 1 ", "does not name the format of a sweep"),
        ("snapshot", "does not name the format of a sweep"),
    ] {
        // A newer one may have nothing in common but its first field.
        let said = read(json!({"format": format}).to_string().as_bytes()).unwrap_err().to_string();
        assert!(said.contains(want), "{format}: {said}");
    }
}

#[test]
fn what_no_sweep_has_is_refused_in_a_sentence() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, &str); 16] = [
        ("no runs", |it| it["runs"] = json!([]), "it has no runs"),
        ("runs of another kind", |it| it["runs"] = json!("many"), "is of another kind"),
        ("a negative peak", |it| it["runs"][0]["peak_reserved"] = json!(-1), "is of another kind"),
        ("a broken peak", |it| it["runs"][0]["peak_reserved"] = json!(1.5), "is of another kind"),
        ("a peak beyond 64 bits", |it| it["runs"][0]["peak_reserved"] = json!(1e30), "is of another kind"),
        ("no capacity", |it| it["capacity_bytes"] = json!(null), "is of another kind"),
        ("an option for a name", |it| it["story"] = json!("--out=x"), "no name"),
        ("a command for a parameter", |it| it["param"] = json!("a;b"), "no name"),
        ("a command for a choice", |it| it["choices"] = json!({"$(id)": "1"}), "no name"),
        ("an empty value", |it| it["runs"][0]["value"] = json!(""), "a value is empty"),
        ("a value that turns text around", |it| it["runs"][0]["value"] = json!("1\u{202e}"), "a value is empty"),
        ("lines in a card", |it| it["card"] = json!("a\nb"), "a value is empty"),
        ("a largest that fails", |it| it["largest"]["fits"]["fits"] = json!(false), "contradicts itself"),
        ("a largest of words", |it| it["largest"]["fits"]["value"] = json!("full"), "is not a number"),
        (
            "a largest in the wrong order",
            |it| it["largest"]["fits"]["value"] = json!("9999"),
            "not below the one that fails",
        ),
        ("an unknown end", |it| it["largest"]["found"] = json!("nowhere"), "is of another kind"),
    ];
    for (name, change, want) in cases {
        let said = refused(name, change);
        assert!(said.starts_with("The sweep is damaged") && said.contains(want), "{name}: {said}");
    }
}

#[test]
fn sizes_are_bounded() {
    let run = golden()["runs"][0].clone();
    let said = refused("runs", |it| it["runs"] = json!(vec![run; SWEEP_VALUES as usize + 1]));
    assert!(said.contains("more runs or parameters"), "{said}");
    let choices: serde_json::Map<_, _> = (0..65).map(|i| (format!("p{i}"), json!("1"))).collect();
    assert!(refused("choices", |it| it["choices"] = choices.into()).contains("more runs or parameters"));
    assert!(refused("settings", |it| it["conf"] = json!("a".repeat(5_000))).contains("settings are too long"));
    assert!(refused("a name", |it| it["story"] = json!("a".repeat(5_000))).contains("no name"));
    let large = format!("{GOLDEN}{}", " ".repeat(SWEEP_BYTES));
    assert_eq!(read(large.as_bytes()), Err(SweepError::TooLarge));
    // Deep nesting ends at the reader's bound, not at the stack's.
    for open in ["[", "{\"a\":"] {
        let deep = format!("{{\"format\":\"vramscope sweep 1\",\"x\":{}", open.repeat(100_000));
        assert!(matches!(read(deep.as_bytes()), Err(SweepError::Damaged { .. })));
    }
}

#[test]
fn a_document_that_was_cut_off_or_changed_says_where() {
    let start = Instant::now();
    for end in 0..GOLDEN.trim_end().len() {
        let error = read(&GOLDEN.as_bytes()[..end]).unwrap_err();
        assert!(matches!(error, SweepError::Damaged { what: "it ends early", .. }), "{end}: {error}");
    }
    for (place, byte) in GOLDEN.bytes().enumerate() {
        for other in [0, byte ^ 1, byte ^ 0x80, b'"', b'9', b'}'] {
            let mut bytes = GOLDEN.as_bytes().to_vec();
            bytes[place] = other;
            read_and_show(&bytes);
        }
    }
    assert!(start.elapsed() < LONG * 3);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), place in 0..GOLDEN.len()) {
        read_and_show(&bytes);
        let mut mixed = GOLDEN.as_bytes().to_vec();
        mixed.splice(place.., bytes);
        read_and_show(&mixed);
    }

    #[test]
    fn any_numbers_are_shown(numbers in prop::collection::vec(any::<u64>(), 4), word in "[ -~]{1,40}") {
        let mut document = golden();
        document["capacity_bytes"] = json!(numbers[0]);
        document["runs"][0]["peak_reserved"] = json!(numbers[1]);
        document["runs"][0]["device_allocs"] = json!(numbers[2]);
        document["runs"][0]["value"] = json!(numbers[3].to_string());
        document["conf"] = json!(word);
        let sweep = read_and_show(document.to_string().as_bytes());
        prop_assert_eq!(sweep.map(|sweep| read(write(&sweep).as_bytes()) == Ok(sweep)), Some(true));
    }
}
