//! What the Python package calls before PyTorch gets the allocator, and when the process ends.
#![allow(unsafe_code)] // Python calls.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use shared::allocator::AllocatorConfig;
use vramscope::allocator::Release;
use vramscope::recorder::{Capture, DeviceSegments};

use super::devices::Allocators;
use super::raise;
use super::recording::Recording;

thread_local! {
    /// What the last call of this thread that failed had to say.
    static ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs what may fail: 0, or -1 and a text for `vramscope_allocator_error`.
pub(super) fn attempt(work: impl FnOnce() -> Result<(), String>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    match outcome.unwrap_or_else(|_| Err("the allocator panicked; this is a fault of vramscope".to_owned())) {
        Ok(()) => 0,
        Err(text) => {
            ERROR.with(|error| error.replace(text));
            -1
        }
    }
}

/// Makes the process's allocators, with settings as in `PYTORCH_CUDA_ALLOC_CONF`, for the PyTorch of version `torch`.
/// `context` is a level of `_record_memory_history`, `history` the number of entries that snapshots show, `file` where
/// to record to, or null. 0, or -1 and an error.
///
/// # Safety
/// The texts end in zero; `file` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_allocator_start(
    torch: *const c_char,
    settings: *const c_char,
    context: *const c_char,
    history: u64,
    file: *const c_char,
) -> c_int {
    attempt(|| {
        // SAFETY: as the caller promises.
        let [torch, settings, context] =
            unsafe { [text(torch, "torch")?, text(settings, "settings")?, text(context, "context")?] };
        let release = Release::of_running(torch).map_err(|error| error.to_string())?;
        let config = AllocatorConfig::from_conf(settings, release.profile).map_err(|error| error.to_string())?;
        let level = Capture::from_name(context)
            .ok_or_else(|| format!("context {context:?} is none of \"none\", \"state\", \"alloc\" and \"all\""))?;
        let file = match file.is_null() {
            true => None,
            // SAFETY: not null, so it ends in zero.
            false => Some(PathBuf::from(unsafe { text(file, "file")? })),
        };
        let history = usize::try_from(history).unwrap_or(usize::MAX);
        Allocators::set(release.profile, config, level, history, Recording::new(file))
    })
}

/// Changes the settings while the job runs, on all devices. 0, or -1 and an error; what came before the mistake is then
/// in force, as in PyTorch.
///
/// # Safety
/// The text ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_allocator_set_settings(settings: *const c_char) -> c_int {
    attempt(|| {
        // SAFETY: as the caller promises.
        let settings = unsafe { text(settings, "settings")? };
        let allocators = Allocators::get().ok_or("there is no allocator yet")?;
        let mut outcome = shared::allocator::parse(settings, allocators.profile, &mut allocators.config());
        for slot in allocators.opened() {
            let set =
                slot.locked.with(|allocator| allocator.set_config(settings)).map_err(|fault| fault.to_string())?;
            outcome = outcome.and(set);
        }
        outcome.map_err(|error| error.to_string())
    })
}

/// Ends the recording, if there is one. The allocator goes on.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_allocator_stop_recording() -> c_int {
    attempt(|| {
        let Some(allocators) = Allocators::get() else { return Ok(()) };
        let mut segments = Vec::new();
        for slot in allocators.opened() {
            let ended = slot.locked.with(|allocator| {
                let recorder = allocator.sink_mut().recorder.take();
                recorder.map(|_| allocator.segments())
            });
            if let Ok(Some(ended)) = ended {
                segments.push(DeviceSegments { device: slot.locked.device(), segments: ended });
            }
        }
        match allocators.recording.end(segments).and_then(|stats| stats.failure) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    })
}

/// 1 where out of memory is raised as `torch.OutOfMemoryError`, 0 where it is a `RuntimeError`.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_allocator_raises_out_of_memory() -> c_int {
    catch_unwind(raise::is_exact).unwrap_or(false).into()
}

/// Copies the error of this thread's last call that failed, as UTF-8; gives its bytes, which may be more than `room`.
///
/// # Safety
/// `buffer` has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_allocator_error(buffer: *mut u8, room: usize) -> usize {
    let text = catch_unwind(|| ERROR.with(|error| error.borrow().clone())).unwrap_or_default();
    // SAFETY: as the caller promises.
    unsafe { copy_out(text.as_bytes(), buffer, room) }
}

/// Copies as much as there is room for; gives the number of bytes in all.
///
/// # Safety
/// `buffer` has `room` bytes.
pub(super) unsafe fn copy_out(bytes: &[u8], buffer: *mut u8, room: usize) -> usize {
    if !buffer.is_null() {
        // SAFETY: no more bytes than there are on either side.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len().min(room)) };
    }
    bytes.len()
}

/// A text from C.
///
/// # Safety
/// It ends in zero, or is null, and outlives the result.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, String> {
    if text.is_null() {
        return Err(format!("no {what} was given"));
    }
    // SAFETY: not null, so it ends in zero.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| format!("{what} is not UTF-8"))
}
