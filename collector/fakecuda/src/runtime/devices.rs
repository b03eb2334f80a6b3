//! Devices, versions and errors.

use std::ffi::{c_char, c_int};

use super::properties::{CUDA_12, CUDA_13};
use super::{DEVICE, LAST_ERROR, enter, export, initialized};
use crate::api::put;
use crate::code::Code;

/// The PCI bus of device 0; the next device is on the next bus.
pub(super) const FIRST_BUS: c_int = 0x1b;

// SAFETY, for all of these: pointers and handles are what the caller vouches for.
export! {
    fn cudaSetDevice(machine, _device, number: c_int) {
        machine.numbered(number)?;
        if number != DEVICE.get() {
            enter(machine, number)?;
            DEVICE.set(number);
        }
        Ok(())
    }

    fn cudaInitDevice(machine, _device, number: c_int, _flags: u32, _more: u32) {
        machine.numbered(number).map(|_| ())
    }

    fn cudaGetDevice(_machine, device, number: *mut c_int) {
        unsafe { put(number, device as c_int) }
    }

    fn cudaDriverGetVersion(machine, _device, version: *mut c_int) {
        unsafe { put(version, machine.settings.version) }
    }

    fn cudaRuntimeGetVersion(machine, _device, version: *mut c_int) {
        unsafe { put(version, machine.settings.version) }
    }

    fn cudaDeviceGetAttribute(machine, _device, value: *mut c_int, number: c_int, device: c_int) {
        machine.numbered(device)?;
        unsafe { put(value, machine.model.attribute(number)) }
    }

    fn cudaDeviceCanAccessPeer(machine, _device, can: *mut c_int, from: c_int, to: c_int) {
        machine.numbered(from)?;
        machine.numbered(to)?;
        unsafe { put(can, c_int::from(from != to)) }
    }

    fn cudaDeviceEnablePeerAccess(machine, _device, to: c_int, _flags: u32) {
        machine.numbered(to).map(|_| ())
    }

    fn cudaDeviceGetPCIBusId(machine, _device, text: *mut c_char, length: c_int, device: c_int) {
        machine.numbered(device)?;
        let id = format!("0000:{:02X}:00.0\0", FIRST_BUS + device);
        if usize::try_from(length).is_ok_and(|length| length < id.len()) {
            return Err(Code::INVALID_VALUE);
        }
        for (i, byte) in id.bytes().enumerate() {
            unsafe { put(text.add(i), byte as c_char)? };
        }
        Ok(())
    }

    fn cudaDeviceGetStreamPriorityRange(_machine, _device, least: *mut c_int, greatest: *mut c_int) {
        unsafe { put(least, 0)? };
        unsafe { put(greatest, -5) }
    }

    fn cudaDeviceSynchronize(machine, device) {
        machine.synchronize_device(device)
    }

    // Since CUDA 13; the structure is another one under the name of CUDA 12.
    fn cudaGetDeviceProperties(machine, _device, properties: *mut u8, device: c_int) {
        CUDA_13.fill(machine, device, |at, byte| unsafe { put(properties.add(at), byte) })
    }

    fn cudaGetDeviceProperties_v2(machine, _device, properties: *mut u8, device: c_int) {
        CUDA_12.fill(machine, device, |at, byte| unsafe { put(properties.add(at), byte) })
    }
}

/// `cudaGetDeviceCount` of the runtime.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaGetDeviceCount(count: *mut c_int) -> u32 {
    let devices = initialized(|machine| machine.devices.len());
    // SAFETY: the caller's.
    if unsafe { put(count, devices as c_int) }.is_err() {
        return Code::INVALID_VALUE.0;
    }
    if devices == 0 { Code::NO_DEVICE.0 } else { 0 }
}

/// `cudaGetLastError` of the runtime: returns the thread's last error and forgets it.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaGetLastError() -> u32 {
    LAST_ERROR.replace(0)
}

/// `cudaPeekAtLastError` of the runtime: returns the thread's last error.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaPeekAtLastError() -> u32 {
    LAST_ERROR.get()
}

/// `cudaGetErrorString` of the runtime. Its codes are those of the driver, as far as this library returns any.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaGetErrorString(code: u32) -> *const c_char {
    Code(code).texts().map_or(c"unrecognized error code", |(_, explanation)| explanation).as_ptr()
}

/// `cudaGetErrorName` of the runtime: the driver's name for the code.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaGetErrorName(code: u32) -> *const c_char {
    Code(code).texts().map_or(c"unrecognized error code", |(name, _)| name).as_ptr()
}
