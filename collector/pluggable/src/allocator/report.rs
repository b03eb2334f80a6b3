//! Statistics and snapshots for the Python package, because PyTorch has no hooks for them.
#![allow(unsafe_code)] // Python calls.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::panic::catch_unwind;
use std::ptr;

use allocator::{DeviceAllocator, Driver, Stats};
use format::export;
use recorder::allocator::{DeviceState, snapshot};
use serde_json::{Map, Value};

use super::devices::Allocators;
use super::start::copy_out;
use crate::guard::{OK, checked};

/// Writes `torch.cuda.memory_stats(device)` as a JSON object with flat names. Returns its size, which may exceed `room`;
/// 0 without an allocator.
///
/// # Safety
/// `buffer` has `room` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_allocator_stats_json(device: c_int, buffer: *mut u8, room: usize) -> usize {
    let json = catch_unwind(|| stats_json(device)).ok().flatten().unwrap_or_default();
    // SAFETY: as the caller promises.
    unsafe { copy_out(json.as_bytes(), buffer, room) }
}

fn stats_json(device: c_int) -> Option<String> {
    let allocators = Allocators::get()?;
    let entries = match allocators.opened_device(device) {
        Some(slot) => slot.locked.with(|allocator| allocator.memory_stats()).ok()?,
        // The device was not used yet: like PyTorch's, its statistics are zeros.
        None => {
            let max_split_size = allocators.config().max_split_size as i64;
            Stats { max_split_size, ..Stats::default() }.entries(allocators.profile, &BTreeMap::new())
        }
    };
    let object: Map<String, Value> = entries.into_iter().map(|(name, value)| (name, value.into())).collect();
    Some(Value::Object(object).to_string())
}

/// Sets peaks to the present values (`reset_peak_memory_stats`). Returns 0, or -1 with an error.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_allocator_reset_peak(device: c_int) -> c_int {
    checked(|| {
        let Some(slot) = Allocators::get().and_then(|all| all.opened_device(device)) else { return Ok(()) };
        slot.locked.with(DeviceAllocator::reset_peak_stats).map_err(|fault| fault.to_string())
    })
}

/// Resets sums and event counts (`reset_accumulated_memory_stats`). Returns 0, or -1 with an error.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_allocator_reset_accumulated(device: c_int) -> c_int {
    checked(|| {
        let Some(slot) = Allocators::get().and_then(|all| all.opened_device(device)) else { return Ok(()) };
        slot.locked.with(DeviceAllocator::reset_accumulated_stats).map_err(|fault| fault.to_string())
    })
}

/// Starts a new history for snapshots, of at most `max_entries` for each device; 0 ends it. Returns 0, or -1 with an
/// error.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_allocator_set_history(max_entries: u64) -> c_int {
    checked(|| {
        let allocators = Allocators::get().ok_or("vramscope.use_allocator() was not called in this process")?;
        let max_entries = usize::try_from(max_entries).unwrap_or(usize::MAX);
        allocators.set_history(max_entries).map_err(|fault| fault.to_string())
    })
}

/// Returns the fraction of a device's memory that this process may use (`get_per_process_memory_fraction`); 1 if it is
/// not limited.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_allocator_fraction(device: c_int) -> f64 {
    let fraction = catch_unwind(|| {
        let slot = Allocators::get()?.opened_device(device)?;
        let share = slot.locked.with(|allocator| {
            let total = allocator.driver().total_memory();
            allocator.limit().map(|limit| limit as f64 / total as f64)
        });
        share.ok().flatten()
    });
    fraction.ok().flatten().unwrap_or(1.0)
}

/// Creates a snapshot of all devices, as `torch.cuda.memory._dump_snapshot` pickles it. Returns its bytes and writes
/// their number to `size`, or returns null with an error. Free the bytes with `vramscope_allocator_snapshot_free`.
///
/// # Safety
/// `size` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_allocator_snapshot(size: *mut usize) -> *mut u8 {
    let mut bytes = Vec::new();
    let taken = checked(|| {
        let allocators = Allocators::get().ok_or("vramscope.use_allocator() was not called in this process")?;
        let mut states = Vec::new();
        for slot in allocators.opened() {
            let state = slot.locked.with(|allocator| DeviceState::capture(slot.locked.device(), allocator));
            states.push(state.map_err(|fault| fault.to_string())?);
        }
        let settings = export::settings(&allocators.config(), allocators.profile);
        let has_pools = allocators.profile.entries_name_pools;
        let snapshot = snapshot(states, allocators.stacks().symbols(), settings, has_pools);
        export::pickle(&snapshot, &mut |piece| bytes.extend_from_slice(piece));
        Ok(())
    });
    if taken != OK {
        return ptr::null_mut();
    }
    let bytes = bytes.into_boxed_slice();
    // SAFETY: as the caller promises.
    unsafe { *size = bytes.len() };
    Box::into_raw(bytes).cast::<u8>()
}

/// Frees the bytes of `vramscope_allocator_snapshot`.
///
/// # Safety
/// `bytes` is null or a result of that function with its `size`, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_allocator_snapshot_free(bytes: *mut u8, size: usize) {
    if !bytes.is_null() {
        // SAFETY: `vramscope_allocator_snapshot` created them as a box of `size` bytes.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(bytes, size)) });
    }
}
