//! Functions for plain memory, copies and fills.

use std::slice;

use super::{export, put};
use crate::code::Code;
use crate::device::Kind;
use crate::streams::Work;

// SAFETY of all functions below: the caller promises valid pointers and handles.
export! {
    fn cuMemAlloc_v2(machine, address: *mut u64, size: usize) {
        let device = machine.current()?;
        let allocated = machine.device(device)?.allocate(size as u64, Kind::Plain)?;
        unsafe { put(address, allocated) }
    }

    fn cuMemFree_v2(machine, address: u64) {
        machine.current()?;
        if address == 0 {
            return Ok(());
        }
        let device = machine.device_at(address)?;
        match device.allocations.get(&address).map(|allocation| &allocation.kind) {
            Some(Kind::Plain | Kind::Managed(_)) => {}
            _ => return Err(Code::INVALID_VALUE),
        }
        // Work that uses the memory is done first.
        let current = machine.current()?;
        machine.synchronize_device(current)?;
        machine.device_at(address)?.free(address).map(|_| ())
    }

    fn cuMemcpyHtoD_v2(machine, to: u64, from: *const u8, size: usize) {
        machine.current()?;
        let bytes = unsafe { slice::from_raw_parts(from, size) };
        machine.write(to, bytes)
    }

    fn cuMemcpyDtoH_v2(machine, to: *mut u8, from: u64, size: usize) {
        machine.current()?;
        let bytes = unsafe { slice::from_raw_parts_mut(to, size) };
        machine.read(from, bytes)
    }

    fn cuMemcpyHtoDAsync_v2(machine, to: u64, from: *const u8, size: usize, stream: usize) {
        let key = machine.stream(stream)?;
        machine.check(to, size as u64)?;
        let bytes = unsafe { slice::from_raw_parts(from, size) }.to_vec();
        machine.submit(key, Work::Write { to, bytes }).map(|_| ())
    }

    fn cuMemcpyDtoHAsync_v2(machine, to: *mut u8, from: u64, size: usize, stream: usize) {
        let key = machine.stream(stream)?;
        machine.check(from, size as u64)?;
        // With host memory that is not pinned, the driver returns after the copy.
        machine.synchronize(key)?;
        let bytes = unsafe { slice::from_raw_parts_mut(to, size) };
        machine.read(from, bytes)
    }

    fn cuMemcpyDtoDAsync_v2(machine, to: u64, from: u64, size: usize, stream: usize) {
        let key = machine.stream(stream)?;
        let size = size as u64;
        machine.check(to, size)?;
        machine.check(from, size)?;
        machine.submit(key, Work::Copy { to, from, size }).map(|_| ())
    }

    fn cuMemsetD8_v2(machine, at: u64, value: u8, size: usize) {
        machine.current()?;
        machine.fill(at, value, size as u64)
    }

    fn cuMemsetD8Async(machine, at: u64, value: u8, size: usize, stream: usize) {
        let key = machine.stream(stream)?;
        let size = size as u64;
        machine.check(at, size)?;
        machine.submit(key, Work::Fill { at, value, size }).map(|_| ())
    }
}
