//! The functions that route allocations to private pools, for CUDA graph captures, and for `MemPool` where a release
//! allows it. A `MempoolId_t` is a pair of 64-bit numbers, which the ABI passes as two arguments.
#![allow(unsafe_code)] // C++ calls.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use trace::units::PoolId;

use super::devices::{Allocators, Slot};
use super::errors::print_error;
use super::filter::{StdFunction, filter};
use super::hooks::raise_if_failed;

/// `begin_allocate_to_pool`.
///
/// # Safety
/// To be called only by `CUDAPluggableAllocator`, with its filter, where C++ exceptions may unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vramscope_begin_allocate_to_pool(
    device: c_int,
    id_high: u64,
    id_low: u64,
    object: *const StdFunction,
) {
    let begun = catch_unwind(AssertUnwindSafe(|| {
        let slot = slot(device)?;
        // SAFETY: as the caller promises.
        let filter = unsafe { filter(object) }?;
        let begun = slot.locked.with(|allocator| allocator.begin_allocate_to_pool(PoolId(id_high, id_low), filter));
        begun.map_err(|fault| fault.to_string())?.map_err(|error| error.to_string())?;
        slot.routes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }));
    // SAFETY: the caller lets exceptions unwind; nothing is left here that must be dropped.
    unsafe { raise_if_failed(begun.unwrap_or_else(|_| Err("begin_allocate_to_pool panicked".to_owned()))) }
}

/// `end_allocate_to_pool`.
///
/// # Safety
/// To be called only by `CUDAPluggableAllocator`, where C++ exceptions may unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vramscope_end_allocate_to_pool(device: c_int, id_high: u64, id_low: u64) {
    let ended = catch_unwind(|| {
        let slot = slot(device)?;
        let ended = slot.locked.with(|allocator| allocator.end_allocate_to_pool(PoolId(id_high, id_low)));
        ended.map_err(|fault| fault.to_string())?.map_err(|error| error.to_string())?;
        slot.routes.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    });
    // SAFETY: as above.
    unsafe { raise_if_failed(ended.unwrap_or_else(|_| Err("end_allocate_to_pool panicked".to_owned()))) }
}

/// `release_pool`. PyTorch calls it from destructors, so errors are only printed.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_release_pool(device: c_int, id_high: u64, id_low: u64) {
    let released = catch_unwind(|| {
        let released = slot(device)?.locked.with(|allocator| allocator.release_pool(PoolId(id_high, id_low)));
        released.map_err(|fault| fault.to_string())?.map_err(|error| error.to_string())
    });
    if let Err(error) = released.unwrap_or_else(|_| Err("it panicked".to_owned())) {
        print_error("release_pool", &error);
    }
}

fn slot(device: c_int) -> Result<&'static Slot, String> {
    Allocators::get().ok_or("vramscope.use_allocator() was not called in this process")?.device(device)
}
