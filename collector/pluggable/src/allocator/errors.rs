//! Errors of functions that must not raise an exception: lines on standard error, up to a bound.

use std::sync::atomic::{AtomicU32, Ordering};

use trace::text::escaped;

/// The most errors that are printed.
const MAX_ERRORS: u32 = 16;
static ERRORS: AtomicU32 = AtomicU32::new(0);

/// Prints an error that cannot be returned to the caller.
pub(super) fn print_error(what: &str, error: &dyn std::fmt::Display) {
    match ERRORS.fetch_add(1, Ordering::Relaxed) {
        printed if printed < MAX_ERRORS => eprintln!("vramscope: {what}: {}", escaped(&error.to_string())),
        MAX_ERRORS => eprintln!("vramscope: Further errors are not printed."),
        _ => {}
    }
}
