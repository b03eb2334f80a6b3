//! Functions for virtual memory.

use std::ffi::{c_int, c_void};

use super::{export, put};
use crate::arena::GRANULE;
use crate::code::{Code, Outcome};
use crate::device::Device;
use crate::machine::Machine;

/// A location (`CUmemLocation`): its type and the device's number.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Location {
    kind: u32,
    pub(super) id: c_int,
}

/// The used part of an allocation's properties (`CUmemAllocationProp`).
#[repr(C)]
pub(crate) struct Properties {
    kind: u32,
    handle_types: u32,
    location: Location,
    security: *mut c_void,
    flags: [u8; 8],
}

/// The access to a mapping (`CUmemAccessDesc`).
#[repr(C)]
pub(crate) struct Access {
    location: Location,
    flags: u32,
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED` and `CU_MEM_LOCATION_TYPE_DEVICE`.
const PINNED: u32 = 1;
const ON_DEVICE: u32 = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_AND_WRITE: u32 = 3;

/// The first bit of the device's number in a handle.
const DEVICE_SHIFT: u32 = 48;

/// Splits a handle into its device and the device's own handle.
fn physical(machine: &mut Machine, handle: u64) -> Outcome<(&mut Device, u64)> {
    let number = (handle >> DEVICE_SHIFT).checked_sub(1).ok_or(Code::INVALID_VALUE)?;
    let device = machine.device(number as usize).map_err(|_| Code::INVALID_VALUE)?;
    Ok((device, handle & ((1 << DEVICE_SHIFT) - 1)))
}

// SAFETY of all functions below: the caller promises valid pointers and handles.
export! {
    fn cuMemGetAllocationGranularity(_machine, bytes: *mut usize, properties: *const Properties, _option: u32) {
        unsafe { properties.as_ref() }.ok_or(Code::INVALID_VALUE)?;
        unsafe { put(bytes, GRANULE as usize) }
    }

    fn cuMemAddressReserve(machine, address: *mut u64, size: usize, _alignment: usize, _wanted: u64, flags: u64) {
        let device = machine.current()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let reserved = machine.device(device)?.ranges.reserve(size as u64)?;
        unsafe { put(address, reserved) }
    }

    fn cuMemAddressFree(machine, address: u64, size: usize) {
        machine.device_at(address)?.ranges.release(address, size as u64)
    }

    fn cuMemCreate(machine, handle: *mut u64, size: usize, properties: *const Properties, flags: u64) {
        let properties = unsafe { properties.as_ref() }.ok_or(Code::INVALID_VALUE)?;
        let (location, size) = (properties.location, size as u64);
        let is_known = properties.kind == PINNED && location.kind == ON_DEVICE && flags == 0;
        if !is_known || size == 0 || !size.is_multiple_of(GRANULE) {
            return Err(Code::INVALID_VALUE);
        }
        let device = machine.numbered(location.id)?;
        device.charge(size)?;
        let created = device.ranges.create(size);
        if created.is_err() {
            device.used -= size;
        }
        unsafe { put(handle, created? | (location.id as u64 + 1) << DEVICE_SHIFT) }
    }

    fn cuMemRelease(machine, handle: u64) {
        let (device, handle) = physical(machine, handle)?;
        device.used -= device.ranges.drop_handle(handle)?;
        Ok(())
    }

    fn cuMemMap(machine, address: u64, size: usize, offset: usize, handle: u64, flags: u64) {
        if offset != 0 || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (device, handle) = physical(machine, handle)?;
        device.ranges.map(address, size as u64, handle)
    }

    fn cuMemSetAccess(machine, address: u64, size: usize, access: *const Access, count: usize) {
        let access = unsafe { access.as_ref() }.filter(|_| count == 1).ok_or(Code::INVALID_VALUE)?;
        if access.location.kind != ON_DEVICE || access.flags != READ_AND_WRITE {
            return Err(Code::INVALID_VALUE);
        }
        machine.device_at(address)?.ranges.open(address, size as u64)
    }

    fn cuMemUnmap(machine, address: u64, size: usize) {
        let device = machine.device_at(address)?;
        device.used -= device.ranges.unmap(address, size as u64)?;
        Ok(())
    }
}
