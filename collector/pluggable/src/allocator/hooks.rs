//! The functions that PyTorch calls if they are set, with plain C types.
#![allow(unsafe_code)] // C++ calls.

use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;

use allocator::MisuseError;
use recorder::allocator::Refusal;
use trace::event::Action;
use trace::units::{Address, Stream};

use super::devices::{Allocators, adopt};
use super::entry::stack_for;
use super::errors::print_error;
use super::raise::raise;

/// `init`: CUDA is being initialised. The recording starts here.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_init(_device_count: c_int) {
    let begun = catch_unwind(|| {
        let Some(allocators) = Allocators::get() else { return Ok(()) };
        let settings = format::export::settings(&allocators.config(), allocators.profile);
        allocators.recording.start(allocators.profile.torch, &settings, allocators.level)
    });
    match begun {
        Ok(Ok(())) => {}
        Ok(Err(error)) => print_error("Not recording", &error),
        Err(_) => print_error("Not recording", &"the recorder panicked"),
    }
}

/// `reset`: `torch.cuda.empty_cache()` for all devices.
///
/// # Safety
/// To be called only by `CUDAPluggableAllocator`, where C++ exceptions may unwind.
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
    // SAFETY: the caller lets exceptions unwind; nothing is left here that must be dropped.
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

/// `base_alloc`: returns the start of the segment that contains an address, and its size; null if none does.
///
/// # Safety
/// To be called only by `CUDAPluggableAllocator`. `size` is null or may be written.
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
        print_error("Cannot find a segment", &MisuseError::UnknownAddress(Address(address)));
        return std::ptr::null_mut();
    };
    if !size.is_null() {
        // SAFETY: it is not null, and the caller lets it be written.
        unsafe { *size = segment.size as usize };
    }
    segment.address.0 as *mut c_void
}

/// `record_stream`: another stream uses an allocation. Memory of another allocator is ignored, as in PyTorch.
///
/// # Safety
/// To be called only by `CUDAPluggableAllocator`, with a stream of the allocation's device.
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
        print_error("record_stream", &error);
    }
}

/// Raises a `RuntimeError` if `outcome` is an error.
///
/// # Safety
/// As [`raise`].
pub(super) unsafe fn raise_if_failed(outcome: Result<(), String>) {
    if let Err(text) = outcome {
        // SAFETY: as the caller promises.
        unsafe { raise(Refusal::Failed(text)) }
    }
}
