//! What goes wrong where no exception may pass: one line on standard error, a few times.

use std::sync::atomic::{AtomicU32, Ordering};

/// Lines before the rest is only counted.
const MOST: u32 = 16;
static TOLD: AtomicU32 = AtomicU32::new(0);

/// Tells of a failure that no caller can be told of.
pub(super) fn tell(what: &str, error: &dyn std::fmt::Display) {
    match TOLD.fetch_add(1, Ordering::Relaxed) {
        told if told < MOST => eprintln!("vramscope: {what}: {error}"),
        MOST => eprintln!("vramscope: more errors follow and are not printed"),
        _ => {}
    }
}
