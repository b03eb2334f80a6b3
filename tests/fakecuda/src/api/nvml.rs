//! NVML: what a device holds, and who holds it. Its codes are not the driver's.

use std::ffi::{CStr, c_char};

use super::devices::UUID;
use crate::machine::{Machine, machine};

const DONE: u32 = 0;
const INVALID_ARGUMENT: u32 = 2;
const NOT_FOUND: u32 = 6;
const INSUFFICIENT_SIZE: u32 = 7;

/// A process that is not this one.
const OTHER_PID: u32 = 4242;

/// `nvmlMemory_v2_t`.
#[repr(C)]
pub(crate) struct Memory {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlProcessInfo_t`.
#[repr(C)]
pub(crate) struct Process {
    pid: u32,
    used: u64,
    instance: u32,
    compute_instance: u32,
}

/// Runs a body with the device of a handle: its number and 1.
fn with_device(device: usize, body: impl FnOnce(&mut Machine, usize) -> u32) -> u32 {
    let mut machine = machine();
    match device.checked_sub(1).filter(|number| *number < machine.devices.len()) {
        Some(number) => body(&mut machine, number),
        None => INVALID_ARGUMENT,
    }
}

/// `nvmlInit_v2` of NVML.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlInit_v2() -> u32 {
    DONE
}

/// `nvmlShutdown` of NVML.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlShutdown() -> u32 {
    DONE
}

/// `nvmlDeviceGetHandleByUUID` of NVML.
///
/// # Safety
/// The text ends with 0, the other pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut usize) -> u32 {
    // SAFETY: the caller's.
    let wanted = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
    let digits: String = wanted.trim_start_matches("GPU-").chars().filter(|c| *c != '-').collect();
    let start: String = UUID.iter().map(|byte| format!("{byte:02x}")).collect();
    let number = digits.strip_prefix(&start).and_then(|number| usize::from_str_radix(number, 16).ok());
    match number.filter(|number| *number < machine().devices.len()) {
        Some(number) => {
            // SAFETY: the caller's.
            unsafe { device.write(number + 1) };
            DONE
        }
        None => NOT_FOUND,
    }
}

/// `nvmlDeviceGetMemoryInfo_v2` of NVML.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: usize, memory: *mut Memory) -> u32 {
    with_device(device, |machine, number| {
        let device = &machine.devices[number];
        let (total, used) = (device.capacity, device.used);
        // SAFETY: the caller's.
        let version = unsafe { (*memory).version };
        let told = Memory { version, total, reserved: 0, free: total.saturating_sub(used), used };
        // SAFETY: the caller's.
        unsafe { memory.write(told) };
        DONE
    })
}

/// `nvmlDeviceGetComputeRunningProcesses_v3` of NVML.
///
/// # Safety
/// The list has room for as many as `count` says, or is null with a count of 0.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: usize,
    count: *mut u32,
    list: *mut Process,
) -> u32 {
    with_device(device, |machine, number| {
        let device = &machine.devices[number];
        let own = (std::process::id(), device.used - device.other);
        let all = [own, (OTHER_PID, device.other)];
        let held: Vec<_> = all.into_iter().filter(|(_, used)| *used > 0).collect();
        // SAFETY: the caller's.
        let room = unsafe { count.replace(held.len() as u32) };
        if (room as usize) < held.len() {
            return INSUFFICIENT_SIZE;
        }
        for (i, (pid, used)) in held.into_iter().enumerate() {
            // SAFETY: there is room for all.
            unsafe { list.add(i).write(Process { pid, used, instance: u32::MAX, compute_instance: u32::MAX }) };
        }
        DONE
    })
}

/// `nvmlDeviceGetGraphicsRunningProcesses_v3` of NVML: nobody draws.
///
/// # Safety
/// The first pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    _device: usize,
    count: *mut u32,
    _list: *mut Process,
) -> u32 {
    // SAFETY: the caller's.
    unsafe { count.write(0) };
    DONE
}
