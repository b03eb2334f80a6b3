//! Memory of the device and of the host.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::export;
use crate::api::put;
use crate::code::{Code, Outcome};
use crate::device::Kind;
use crate::machine::Machine;

/// The parts of `cudaPointerAttributes` that every CUDA version has at its start.
#[repr(C)]
pub(crate) struct PointerAttributes {
    kind: c_int,
    device: c_int,
    on_device: u64,
    on_host: u64,
}

/// `cudaMemoryTypeHost` and `cudaMemoryTypeDevice`; 0 is memory that CUDA does not know.
const ON_HOST: c_int = 1;
const ON_DEVICE: c_int = 2;

/// The memory of the host that CUDA knows, by its address, with its size.
fn pinned() -> MutexGuard<'static, BTreeMap<u64, u64>> {
    static PINNED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());
    PINNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What memory of the host is aligned to.
const PAGE: usize = 4096;

/// Copies memory, whosever it is: a device's is memory of this process, wherever it can be touched.
///
/// # Safety
/// What is not a device's is accessible.
unsafe fn copy(machine: &mut Machine, to: u64, from: u64, size: usize) -> Outcome {
    for address in [to, from] {
        if machine.device_at(address).is_ok() {
            machine.check(address, size as u64)?;
        }
    }
    if size as u64 <= machine.settings.largest_write || machine.device_at(to).is_err() {
        // SAFETY: the caller's, and what was checked.
        unsafe { crate::system::copy(to, from, size) };
    }
    Ok(())
}

// SAFETY, for all of these: pointers and handles are what the caller vouches for.
export! {
    fn cudaMalloc(machine, device, address: *mut u64, size: usize) {
        let taken = if size == 0 { 0 } else { machine.device(device)?.allocate(size as u64, Kind::Plain)? };
        unsafe { put(address, taken) }
    }

    fn cudaMallocManaged(machine, device, address: *mut u64, size: usize, _flags: u32) {
        let taken = machine.device(device)?.allocate(size.max(1) as u64, Kind::Managed(BTreeSet::new()))?;
        unsafe { put(address, taken) }
    }

    // Unified memory stays on the host: a device that lacks memory drives it out again.
    fn cudaMemPrefetchAsync(_machine, _device, _address: u64, _size: usize) {
        Ok(())
    }

    fn cudaMemAdvise(_machine, _device, _address: u64, _size: usize) {
        Ok(())
    }

    // The real one waits for the device's work first. Here a held stream stays held, so that a script decides when
    // the events on it complete.
    fn cudaFree(machine, _device, address: u64) {
        if address == 0 {
            return Ok(());
        }
        machine.device_at(address)?.free(address).map(|_| ())
    }

    fn cudaMemGetInfo(machine, device, free: *mut usize, total: *mut usize) {
        let device = machine.device(device)?;
        let (used, capacity) = (device.used, device.capacity);
        unsafe { put(free, capacity.saturating_sub(used) as usize)? };
        unsafe { put(total, capacity as usize) }
    }

    fn cudaPointerGetAttributes(machine, device, attributes: *mut PointerAttributes, address: u64) {
        let number = machine.devices.iter().position(|device| device.is_open(address, 1));
        let told = match number {
            Some(number) => PointerAttributes {
                kind: ON_DEVICE,
                device: number as c_int,
                on_device: address,
                on_host: 0,
            },
            None => {
                let is_pinned = pinned().range(..=address).next_back().is_some_and(|(at, size)| address - at < *size);
                match is_pinned {
                    true => PointerAttributes {
                        kind: ON_HOST,
                        device: device as c_int,
                        on_device: address,
                        on_host: address,
                    },
                    false => PointerAttributes { kind: 0, device: -2, on_device: 0, on_host: 0 },
                }
            }
        };
        unsafe { put(attributes, told) }
    }

    fn cudaHostAlloc(_machine, _device, address: *mut *mut c_void, size: usize, _flags: u32) {
        let size = size.max(1).checked_next_multiple_of(PAGE).ok_or(Code::OUT_OF_MEMORY)?;
        let taken = unsafe { libc::aligned_alloc(PAGE, size) };
        if taken.is_null() {
            return Err(Code::OUT_OF_MEMORY);
        }
        pinned().insert(taken as u64, size as u64);
        unsafe { put(address, taken) }
    }

    fn cudaFreeHost(_machine, _device, address: *mut c_void) {
        pinned().remove(&(address as u64));
        unsafe { libc::free(address) };
        Ok(())
    }

    fn cudaHostRegister(_machine, _device, address: u64, size: usize, _flags: u32) {
        pinned().insert(address, size as u64);
        Ok(())
    }

    fn cudaHostUnregister(_machine, _device, address: u64) {
        pinned().remove(&address);
        Ok(())
    }

    fn cudaMemcpy(machine, _device, to: u64, from: u64, size: usize, _kind: c_int) {
        unsafe { copy(machine, to, from, size) }
    }

    fn cudaMemcpyAsync(machine, _device, to: u64, from: u64, size: usize, _kind: c_int, _stream: usize) {
        unsafe { copy(machine, to, from, size) }
    }

    fn cudaMemcpyPeerAsync(
        machine, _device, to: u64, _to_device: c_int, from: u64, _from_device: c_int, size: usize, _stream: usize
    ) {
        unsafe { copy(machine, to, from, size) }
    }

    fn cudaMemcpy2DAsync(
        machine, _device, to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, _kind: c_int,
        _stream: usize
    ) {
        for row in 0..height {
            unsafe { copy(machine, to + (row * to_pitch) as u64, from + (row * from_pitch) as u64, width)? };
        }
        Ok(())
    }

    fn cudaMemsetAsync(machine, _device, at: u64, value: c_int, size: usize, _stream: usize) {
        machine.fill(at, value as u8, size as u64)
    }

    fn cudaMemset(machine, _device, at: u64, value: c_int, size: usize) {
        machine.fill(at, value as u8, size as u64)
    }
}
