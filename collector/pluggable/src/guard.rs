//! Guards for the C functions: a panic never unwinds into the caller, nothing happens in a forked child, and the reason
//! of a failure is kept for the caller.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set in the child of a recording process: its threads do not exist there, and its locks may be held for ever.
static IS_ABANDONED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
    static ANSWER: RefCell<CString> = RefCell::default();
}

/// The result of a C function that succeeded.
pub const OK: i32 = 0;
/// The result of a C function that failed; `vramscope_error` returns the reason.
pub const FAILED: i32 = -1;

/// Makes every later call in this process do nothing.
pub fn abandon() {
    IS_ABANDONED.store(true, Ordering::Release);
}

/// Returns whether [`abandon`] was called in this process.
pub fn is_abandoned() -> bool {
    IS_ABANDONED.load(Ordering::Relaxed)
}

/// Runs the body of a C function. Returns `otherwise` in a forked child, or if the body panics.
pub fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    if is_abandoned() {
        return otherwise;
    }
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Runs the body of a C function like [`guarded`] and returns [`OK`] or [`FAILED`]. The reason of a failure is kept for
/// this thread until the next failure.
pub fn checked(body: impl FnOnce() -> Result<(), String>) -> i32 {
    let unknown = "this process is a fork of the one that is recorded, or Vramscope panicked";
    let result = guarded(Err(unknown.to_owned()), body);
    match result {
        Ok(()) => OK,
        Err(reason) => {
            ERROR.with_borrow_mut(|error| *error = c_string(&reason));
            FAILED
        }
    }
}

/// Returns the reason of this thread's latest failure.
pub fn last_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

/// Returns a text to C. It stays valid until the thread's next such call.
pub fn answer(text: &str) -> *const c_char {
    ANSWER.with_borrow_mut(|answer| {
        *answer = c_string(text);
        answer.as_ptr()
    })
}

fn c_string(text: &str) -> CString {
    // A zero byte would end the text early.
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Returns a text that a C caller passed; `None` for null.
///
/// # Safety
/// `text` is null, or points to bytes that end in a zero byte and do not change while the result is used.
pub unsafe fn text<'a>(text: *const c_char) -> Option<std::borrow::Cow<'a, str>> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_returns_the_fallback_and_a_failure_its_reason() {
        assert_eq!(guarded(7, || panic!("no")), 7);
        assert_eq!(checked(|| Err("there is\0no such file".to_owned())), FAILED);
        // SAFETY: the text belongs to this thread and was just created.
        assert_eq!(unsafe { text(last_error()) }.as_deref(), Some("there is no such file"));
        assert_eq!(checked(|| Ok(())), OK);
    }
}
