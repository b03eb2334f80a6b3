//! Repeats traces of arbitrary events, which no allocator made, under settings and on devices of any kind.
#![no_main]

#[path = "../../../shared/session/tests/properties/whatif/hostile.rs"]
mod hostile;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| hostile::repeat(data));
