//! What the Python package calls before PyTorch gets the allocator, and when the process ends.
#![allow(unsafe_code)] // Python calls.

use std::ffi::{c_char, c_int};
use std::panic::catch_unwind;

use shared::allocator::AllocatorConfig;
use vramscope::allocator::Release;
use vramscope::recorder::Capture;

use super::devices::Allocators;
use super::raise;
use super::recording::Recording;
use crate::config::Config;
use crate::guard::{text, told};
use crate::job;

/// Makes the process's allocators, with settings as in `PYTORCH_CUDA_ALLOC_CONF`, for the PyTorch of version `torch`.
/// `context` is a level of `_record_memory_history`, `history` the number of entries that snapshots show, `config_json`
/// where to record to, as for `vramscope_start` but without what is known here, or null. 0, or -1 and an error.
///
/// # Safety
/// The texts end in zero, or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_allocator_start(
    torch: *const c_char,
    settings: *const c_char,
    context: *const c_char,
    history: u64,
    config_json: *const c_char,
) -> c_int {
    told(|| {
        // SAFETY: as the caller promises.
        let [torch, settings, context, config] =
            unsafe { [text(torch), text(settings), text(context), text(config_json)] };
        let release = Release::of_running(&torch.unwrap_or_default()).map_err(|error| error.to_string())?;
        let settings = settings.unwrap_or_default();
        let settings = AllocatorConfig::from_conf(&settings, release.profile)
            .map_err(|error| format!("the settings {settings:?} are none: {error}"))?;
        let context = context.unwrap_or_default();
        let level = Capture::from_name(&context)
            .ok_or_else(|| format!("context {context:?} is none of \"none\", \"state\", \"alloc\" and \"all\""))?;
        let config = config.map(|config| Config::parse_part(&config)).transpose()?;
        let history = usize::try_from(history).unwrap_or(usize::MAX);
        Allocators::set(release.profile, settings, level, history, Recording::new(config))
    })
}

/// Changes the settings while the job runs, on all devices. 0, or -1 and an error; what came before the mistake is then
/// in force, as in PyTorch.
///
/// # Safety
/// The text ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_allocator_set_settings(settings: *const c_char) -> c_int {
    told(|| {
        // SAFETY: as the caller promises.
        let settings = unsafe { text(settings) }.unwrap_or_default();
        let allocators = Allocators::get().ok_or("there is no allocator yet")?;
        let mut outcome = shared::allocator::parse(&settings, allocators.profile, &mut allocators.config());
        for slot in allocators.opened() {
            let set =
                slot.locked.with(|allocator| allocator.set_config(&settings)).map_err(|fault| fault.to_string())?;
            outcome = outcome.and(set);
        }
        outcome.map_err(|error| format!("the settings {settings:?} are none: {error}"))
    })
}

/// Hands in no event any more, and says what is reserved at the recording's end. `vramscope_finish` is to follow. The
/// allocator goes on.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_allocator_stop_recording() -> c_int {
    told(|| {
        let (Some(allocators), Some(job)) = (Allocators::get(), job::current()) else { return Ok(()) };
        for slot in allocators.opened() {
            let ended = slot.locked.with(|allocator| {
                let recorder = allocator.sink_mut().recorder.take();
                recorder.map(|recorder| (recorder, allocator.segments()))
            });
            // The end of the queue goes after the lock was given up.
            if let Some((_recorder, segments)) = ended.map_err(|fault| fault.to_string())? {
                job.set_end(slot.locked.device(), segments);
            }
        }
        Ok(())
    })
}

/// 1 where out of memory is raised as `torch.OutOfMemoryError`, 0 where it is a `RuntimeError`.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_allocator_raises_out_of_memory() -> c_int {
    catch_unwind(raise::is_exact).unwrap_or(false).into()
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
