//! Sweeps: any document, damaged in any way. What is read can be shown and written.
#![no_main]

#[path = "../../../shared/session/tests/properties/sweep/hostile.rs"]
mod hostile;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    hostile::read_and_show(data);
    // Past the field that most inputs stop at.
    hostile::read_and_show(&[b"{\"format\": \"vramscope sweep 1\", ", data].concat());
});
