//! Functions for initialisation, devices and contexts.

use std::ffi::{c_char, c_int};

use super::{export, put};
use crate::code::Code;
use crate::machine::{answer, current_context, pop_context, push_context};

/// `CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS`.
const CONCURRENT_MANAGED_ACCESS: c_int = 89;

/// The first bytes of a device's UUID; the last one is its number.
pub(super) const UUID: [u8; 15] = [0xfa, 0x4e, 0xc0, 0xda, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0];

/// The driver's `cuInit`.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuInit(flags: u32) -> u32 {
    answer("cuInit", |machine| {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        machine.is_initialized = true;
        if machine.devices.is_empty() { Err(Code::NO_DEVICE) } else { Ok(()) }
    })
}

/// The driver's `cuDriverGetVersion`, which needs no `cuInit`.
///
/// # Safety
/// The pointer is null or may be written.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> u32 {
    // SAFETY: as the caller promises.
    answer("cuDriverGetVersion", |machine| unsafe { put(version, machine.settings.version) })
}

/// The driver's `cuGetErrorString`.
///
/// # Safety
/// The pointer is null or may be written.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuGetErrorString(code: u32, text: *mut *const c_char) -> u32 {
    answer("cuGetErrorString", |_| {
        let (_, explanation) = Code(code).texts().ok_or(Code::INVALID_VALUE)?;
        // SAFETY: as the caller promises.
        unsafe { put(text, explanation.as_ptr()) }
    })
}

/// The driver's `cuGetErrorName`.
///
/// # Safety
/// The pointer is null or may be written.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuGetErrorName(code: u32, text: *mut *const c_char) -> u32 {
    answer("cuGetErrorName", |_| {
        let (name, _) = Code(code).texts().ok_or(Code::INVALID_VALUE)?;
        // SAFETY: as the caller promises.
        unsafe { put(text, name.as_ptr()) }
    })
}

// SAFETY of all functions below: the caller promises valid pointers and handles.
export! {
    fn cuDeviceGetCount(machine, count: *mut c_int) {
        unsafe { put(count, machine.devices.len() as c_int) }
    }

    fn cuDeviceGet(machine, device: *mut c_int, ordinal: c_int) {
        machine.numbered(ordinal)?;
        unsafe { put(device, ordinal) }
    }

    fn cuDeviceGetName(machine, name: *mut c_char, length: c_int, device: c_int) {
        machine.numbered(device)?;
        let length = usize::try_from(length).ok().filter(|length| *length > 0).ok_or(Code::INVALID_VALUE)?;
        for (i, byte) in machine.settings.name.bytes().take(length - 1).chain([0]).enumerate() {
            unsafe { put(name.add(i), byte as c_char)? };
        }
        Ok(())
    }

    fn cuDeviceGetUuid_v2(machine, uuid: *mut [u8; 16], device: c_int) {
        machine.numbered(device)?;
        let mut bytes = [0; 16];
        bytes[..15].copy_from_slice(&UUID);
        bytes[15] = device as u8;
        unsafe { put(uuid, bytes) }
    }

    fn cuDeviceTotalMem_v2(machine, bytes: *mut usize, device: c_int) {
        let capacity = machine.numbered(device)?.capacity;
        unsafe { put(bytes, capacity as usize) }
    }

    fn cuDeviceGetAttribute(machine, value: *mut c_int, attribute: c_int, device: c_int) {
        machine.numbered(device)?;
        let answer = match attribute {
            CONCURRENT_MANAGED_ACCESS => c_int::from(machine.settings.can_manage),
            _ => machine.model.attribute(attribute),
        };
        unsafe { put(value, answer) }
    }

    fn cuDevicePrimaryCtxRetain(machine, context: *mut usize, device: c_int) {
        let handle = machine.retain(device)?;
        unsafe { put(context, handle) }
    }

    fn cuDevicePrimaryCtxRelease_v2(machine, device: c_int) {
        machine.release(device)
    }

    fn cuCtxGetCurrent(_machine, context: *mut usize) {
        unsafe { put(context, current_context()) }
    }

    fn cuCtxPushCurrent_v2(machine, context: usize) {
        push_context(context);
        machine.current().map(|_| ()).inspect_err(|_| {
            let _ = pop_context();
        })
    }

    fn cuCtxPopCurrent_v2(_machine, context: *mut usize) {
        let handle = pop_context()?;
        unsafe { put(context, handle) }
    }

    fn cuCtxSynchronize(machine) {
        let device = machine.current()?;
        machine.synchronize_device(device)
    }

    fn cuMemGetInfo_v2(machine, free: *mut usize, total: *mut usize) {
        let number = machine.current()?;
        let device = machine.device(number)?;
        let (used, capacity) = (device.used, device.capacity);
        unsafe {
            put(free, capacity.saturating_sub(used) as usize)?;
            put(total, capacity as usize)
        }
    }
}
