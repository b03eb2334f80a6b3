//! The functions that PyTorch may have, in plain C types.
#![allow(unsafe_code)] // C++ calls.

use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;

use shared::allocator::MisuseError;
use shared::event::Action;
use shared::units::{Address, Stream};
use vramscope::allocator::Refusal;

use super::devices::{Allocators, adopt};
use super::entry::stack_for;
use super::errors::tell;
use super::raise::raise;

/// `init`: CUDA begins. The recording begins with it.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_init(_device_count: c_int) {
    let begun = catch_unwind(|| {
        let Some(allocators) = Allocators::get() else { return Ok(()) };
        let settings = shared::export::settings(&allocators.config(), allocators.profile);
        allocators.recording.begin(allocators.profile.torch, &settings, allocators.level)
    });
    match begun {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tell("the job goes on without being recorded", &error),
        Err(_) => tell("the job goes on without being recorded", &"the recorder panicked"),
    }
}

/// `reset`: `torch.cuda.empty_cache()`, of all devices.
///
/// # Safety
/// To be called by `CUDAPluggableAllocator` alone: where C++ exceptions may pass.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vramscope_reset() {
    let emptied = catch_unwind(|| {
        let Some(allocators) = Allocators::get() else { return Ok(()) };
        let stack = stack_for(allocators, Action::SegmentFree);
        for slot in allocators.opened() {
            let emptied = slot.locked.with(|allocator| allocator.empty_cache(stack));
            emptied.map_err(|fault| fault.to_string())?.map_err(|error| error.to_string())?;
        }
        Ok(())
    });
    // SAFETY: the caller lets exceptions pass; nothing is left here that must be dropped.
    unsafe { raise_if_failed(emptied.unwrap_or_else(|_| Err("empty_cache panicked".to_owned()))) }
}

/// `memory_fraction`: `torch.cuda.set_per_process_memory_fraction()`.
///
/// # Safety
/// As [`vramscope_reset`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vramscope_memory_fraction(fraction: f64, device: c_int) {
    let limited = catch_unwind(|| {
        let Some(allocators) = Allocators::get() else { return Ok(()) };
        let slot = allocators.device(device)?;
        let limited = slot.locked.with(|allocator| allocator.set_memory_fraction(fraction));
        limited.map_err(|fault| fault.to_string())?.map_err(|error| error.to_string())
    });
    // SAFETY: as in `vramscope_reset`.
    unsafe { raise_if_failed(limited.unwrap_or_else(|_| Err("set_per_process_memory_fraction panicked".to_owned()))) }
}

/// `base_alloc`: the segment that an address lies in, and its bytes; null for an address in none.
///
/// # Safety
/// To be called by `CUDAPluggableAllocator` alone: `size` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_base_alloc(pointer: *mut c_void, size: *mut usize) -> *mut c_void {
    let address = pointer as usize as u64;
    let found = catch_unwind(|| {
        Allocators::get()?.opened().find_map(|slot| {
            let segments = slot.locked.with(|allocator| allocator.segments()).ok()?;
            segments.into_iter().find(|one| (one.address.0..one.address.0 + one.size).contains(&address))
        })
    });
    let Some(segment) = found.ok().flatten() else {
        tell("a segment was asked for", &MisuseError::UnknownAddress(Address(address)));
        return std::ptr::null_mut();
    };
    if !size.is_null() {
        // SAFETY: not null, and the caller's to be written.
        unsafe { *size = segment.size as usize };
    }
    segment.address.0 as *mut c_void
}

/// `record_stream`: a stream uses an allocation besides its own. Memory that is not this allocator's needs no saying,
/// as PyTorch has it.
///
/// # Safety
/// To be called by `CUDAPluggableAllocator` alone: with a stream of the allocation's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_record_stream(pointer: *mut c_void, stream: *mut c_void) {
    let (address, stream) = (Address(pointer as usize as u64), Stream(stream as usize as i64));
    let recorded = catch_unwind(|| {
        for slot in Allocators::get().into_iter().flat_map(Allocators::opened) {
            let recorded = slot.locked.with(|allocator| {
                adopt(allocator.driver(), stream);
                allocator.record_stream(address, stream)
            });
            match recorded {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(MisuseError::UnknownAddress(_))) => {}
                Ok(Err(error)) => return Err(error.to_string()),
                Err(fault) => return Err(fault.to_string()),
            }
        }
        Ok(())
    });
    if let Err(error) = recorded.unwrap_or_else(|_| Err("it panicked".to_owned())) {
        tell("record_stream", &error);
    }
}

/// Raises `RuntimeError` for an error.
///
/// # Safety
/// As [`raise`].
pub(super) unsafe fn raise_if_failed(outcome: Result<(), String>) {
    if let Err(text) = outcome {
        // SAFETY: passed on to the caller.
        unsafe { raise(Refusal::Failed(text)) }
    }
}
