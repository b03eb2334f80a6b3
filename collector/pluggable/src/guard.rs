//! What every C function begins with: nothing panics into the caller, nothing happens in a forked child, and why
//! something failed can be asked for.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set in a child that was forked off a recording process: its threads are not there, and its locks may be held for
/// good by threads that are not there either.
static IS_ABANDONED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
    static ANSWER: RefCell<CString> = RefCell::default();
}

/// What a C function gives when it did what it should.
pub const OK: i32 = 0;
/// What a C function gives when it did not; `vramscope_error` says why.
pub const FAILED: i32 = -1;

/// From now on this process records nothing, whatever is called.
pub fn abandon() {
    IS_ABANDONED.store(true, Ordering::Release);
}

/// Whether this process is a child that records nothing.
pub fn is_abandoned() -> bool {
    IS_ABANDONED.load(Ordering::Relaxed)
}

/// Runs the body of a C function. `otherwise` is given in a forked child, and when the body panics.
pub fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    if is_abandoned() {
        return otherwise;
    }
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// As [`guarded`], for what fails with a reason: kept for this thread until the next failure.
pub fn told(body: impl FnOnce() -> Result<(), String>) -> i32 {
    let result = guarded(Err("this process was forked off the one that records, or Vramscope failed".to_owned()), body);
    match result {
        Ok(()) => OK,
        Err(reason) => {
            ERROR.with_borrow_mut(|error| *error = c_string(&reason));
            FAILED
        }
    }
}

/// Why the latest call of this thread failed.
pub fn last_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

/// Keeps an answer for this thread until the next one.
pub fn answer(text: &str) -> *const c_char {
    ANSWER.with_borrow_mut(|answer| {
        *answer = c_string(text);
        answer.as_ptr()
    })
}

fn c_string(text: &str) -> CString {
    // What stands behind a zero byte would be lost, so there is none.
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// A text of the caller's.
///
/// # Safety
/// `text` is null, or points to bytes that end in a zero and don't change meanwhile.
pub unsafe fn text<'a>(text: *const c_char) -> Option<std::borrow::Cow<'a, str>> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(guarded(7, || panic!("no")), 7);
        assert_eq!(told(|| Err("there is\0no such file".to_owned())), FAILED);
        // SAFETY: the pointer is of this thread and was just made.
        assert_eq!(unsafe { text(last_error()) }.as_deref(), Some("there is no such file"));
        assert_eq!(told(|| Ok(())), OK);
    }
}
