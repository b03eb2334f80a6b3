//! The functions of NVML that PyTorch's out-of-memory message needs. The rest of what it looks up need only exist.

use std::ffi::{CStr, c_char, c_int};

use super::devices::FIRST_BUS;
use crate::machine::machine;

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
pub(crate) struct Process {
    pid: u32,
    used: u64,
}

const INVALID_ARGUMENT: u32 = 2;
const INSUFFICIENT_SIZE: u32 = 7;

/// `nvmlDeviceGetHandleByPciBusId_v2` of NVML.
///
/// # Safety
/// The text ends with 0, the other pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(bus: *const c_char, device: *mut usize) -> u32 {
    // SAFETY: the caller's.
    let bus = unsafe { CStr::from_ptr(bus) }.to_string_lossy();
    let number = bus.split(':').nth(1).and_then(|bus| c_int::from_str_radix(bus, 16).ok());
    match number.and_then(|bus| usize::try_from(bus - FIRST_BUS).ok()) {
        Some(number) => {
            // SAFETY: the caller's.
            unsafe { device.write(number + 1) };
            0
        }
        None => INVALID_ARGUMENT,
    }
}

/// `nvmlDeviceGetComputeRunningProcesses` of NVML: this process, with everything that the device has handed out.
///
/// # Safety
/// The list has room for as many as `count` says.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses(
    device: usize,
    count: *mut u32,
    list: *mut Process,
) -> u32 {
    // SAFETY: the caller's.
    if unsafe { count.replace(1) } < 1 {
        return INSUFFICIENT_SIZE;
    }
    match machine().devices.get(device.wrapping_sub(1)) {
        Some(device) => {
            // SAFETY: there is room for one.
            unsafe { list.write(Process { pid: std::process::id(), used: device.used }) };
            0
        }
        None => INVALID_ARGUMENT,
    }
}

/// `nvmlSystemGetCudaDriverVersion_v2` of NVML.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> u32 {
    // SAFETY: the caller's.
    unsafe { version.write(machine().settings.version) };
    0
}

/// `nvmlDeviceGetGpuFabricInfoV` of NVML: the device is in no fabric, which is what the caller's zeros say.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlDeviceGetGpuFabricInfoV(_device: usize) -> u32 {
    0
}
