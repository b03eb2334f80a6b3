//! The functions that the Python package calls before PyTorch gets the allocator, to change settings, and at the end.
#![allow(unsafe_code)] // Python calls.

use std::ffi::{c_char, c_int};
use std::panic::catch_unwind;

use allocator::AllocatorConfig;
use recorder::Capture;
use recorder::allocator::Release;

use super::devices::Allocators;
use super::raise;
use super::recording::AllocatorRecording;
use crate::config::Config;
use crate::guard::{checked, text};
use crate::job;

/// Sets up the process's allocators for PyTorch's version `torch`, with settings as in `PYTORCH_CUDA_ALLOC_CONF`.
/// `context` is a level of `_record_memory_history`, and `history` the number of entries that snapshots show.
/// `config_json` is null for no recording, or a configuration as for `vramscope_start`, without the fields that are
/// known here. Returns 0, or -1 with an error.
///
/// # Safety
/// The texts are null or end in zero bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_allocator_start(
    torch: *const c_char,
    settings: *const c_char,
    context: *const c_char,
    history: u64,
    config_json: *const c_char,
) -> c_int {
    checked(|| {
        // SAFETY: as the caller promises.
        let [torch, settings, context, config] =
            unsafe { [text(torch), text(settings), text(context), text(config_json)] };
        let release = Release::of_running(&torch.unwrap_or_default()).map_err(|error| error.to_string())?;
        let settings = settings.unwrap_or_default();
        let settings = AllocatorConfig::from_conf(&settings, release.profile)
            .map_err(|error| format!("Invalid allocator settings {settings:?}: {error}"))?;
        let context = context.unwrap_or_default();
        let level = Capture::from_name(&context)
            .ok_or_else(|| format!("Invalid context {context:?}: use \"none\", \"state\", \"alloc\" or \"all\"."))?;
        let config = config.map(|config| Config::parse_part(&config)).transpose()?;
        let history = usize::try_from(history).unwrap_or(usize::MAX);
        Allocators::set(release.profile, settings, level, history, AllocatorRecording::new(config))
    })
}

/// Changes the settings of all devices while the job runs. Returns 0, or -1 with an error; as in PyTorch, the settings
/// before the invalid one are then in force.
///
/// # Safety
/// The text is null or ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_allocator_set_settings(settings: *const c_char) -> c_int {
    checked(|| {
        // SAFETY: as the caller promises.
        let settings = unsafe { text(settings) }.unwrap_or_default();
        let allocators = Allocators::get().ok_or("vramscope.use_allocator() was not called in this process")?;
        let mut outcome = allocator::parse(&settings, allocators.profile, &mut allocators.config());
        for slot in allocators.opened() {
            let set =
                slot.locked.with(|allocator| allocator.set_config(&settings)).map_err(|fault| fault.to_string())?;
            outcome = outcome.and(set);
        }
        outcome.map_err(|error| format!("Invalid allocator settings {settings:?}: {error}"))
    })
}

/// Stops recording events and sets the segments at the recording's end. Call `vramscope_finish` next. The allocator
/// continues to work.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_allocator_stop_recording() -> c_int {
    checked(|| {
        let (Some(allocators), Some(job)) = (Allocators::get(), job::current()) else { return Ok(()) };
        for slot in allocators.opened() {
            let ended = slot.locked.with(|allocator| {
                let recorder = allocator.sink_mut().recorder.take();
                recorder.map(|recorder| (recorder, allocator.segments()))
            });
            // The sink is dropped after the lock is released.
            if let Some((_recorder, segments)) = ended.map_err(|fault| fault.to_string())? {
                job.set_end(slot.locked.device(), segments);
            }
        }
        Ok(())
    })
}

/// Returns 1 if a failed allocation raises `torch.OutOfMemoryError`, or 0 if it raises `RuntimeError`.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_allocator_raises_out_of_memory() -> c_int {
    catch_unwind(raise::raises_out_of_memory_error).unwrap_or(false).into()
}

/// Copies as many bytes as fit in `room`, and returns the number of all bytes.
///
/// # Safety
/// `buffer` is null or has `room` bytes.
pub(super) unsafe fn copy_out(bytes: &[u8], buffer: *mut u8, room: usize) -> usize {
    if !buffer.is_null() {
        // SAFETY: both sides have at least this many bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len().min(room)) };
    }
    bytes.len()
}
