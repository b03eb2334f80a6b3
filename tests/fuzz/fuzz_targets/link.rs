//! Links: any fragment, of any version. What it is read as can be written, and reads the same from then on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::limits::LINK_BYTES;
use query::link::{Link, Parsed};

/// Returns the link of a fragment as text, and what of it was not understood.
fn written(fragment: &str) -> Option<(String, usize)> {
    match Link::parse(fragment) {
        Parsed::Nothing => None,
        Parsed::Link(read) => Some((read.link.to_string(), read.unread.len())),
    }
}

fn check(fragment: &str) {
    let Some((text, _)) = written(fragment) else { return };
    assert!(text.is_ascii());
    // What is not ASCII becomes longer when it is written.
    if text.len() <= LINK_BYTES {
        assert_eq!(written(&text), Some((text.clone(), 0)));
    }
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    check(&text);
    // This version, and a later one.
    for version in 1..=2 {
        check(&format!("v={version}&{text}"));
    }
});
