//! NVML's functions: a device's memory and the processes that use it. Its codes differ from the driver's.

use std::ffi::{CStr, c_char};

use super::devices::UUID;
use crate::machine::{Machine, machine};

const DONE: u32 = 0;
const INVALID_ARGUMENT: u32 = 2;
const NOT_FOUND: u32 = 6;
const INSUFFICIENT_SIZE: u32 = 7;

/// The number of another process.
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

/// Calls `body` with the device of a handle, which is the device's number plus 1.
fn with_device(device: usize, body: impl FnOnce(&mut Machine, usize) -> u32) -> u32 {
    let mut machine = machine();
    match device.checked_sub(1).filter(|number| *number < machine.devices.len()) {
        Some(number) => body(&mut machine, number),
        None => INVALID_ARGUMENT,
    }
}

/// NVML's `nvmlInit_v2`.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlInit_v2() -> u32 {
    DONE
}

/// NVML's `nvmlShutdown`.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlShutdown() -> u32 {
    DONE
}

/// NVML's `nvmlDeviceGetHandleByUUID`.
///
/// # Safety
/// The text ends in a zero byte; the other pointer may be written.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut usize) -> u32 {
    // SAFETY: as the caller promises.
    let wanted = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
    let digits: String = wanted.trim_start_matches("GPU-").chars().filter(|c| *c != '-').collect();
    let start: String = UUID.iter().map(|byte| format!("{byte:02x}")).collect();
    let number = digits.strip_prefix(&start).and_then(|number| usize::from_str_radix(number, 16).ok());
    match number.filter(|number| *number < machine().devices.len()) {
        Some(number) => {
            // SAFETY: as the caller promises.
            unsafe { device.write(number + 1) };
            DONE
        }
        None => NOT_FOUND,
    }
}

/// NVML's `nvmlDeviceGetMemoryInfo_v2`.
///
/// # Safety
/// The pointer may be written.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: usize, memory: *mut Memory) -> u32 {
    with_device(device, |machine, number| {
        let device = &machine.devices[number];
        let (total, used) = (device.capacity, device.used);
        // SAFETY: as the caller promises.
        let version = unsafe { (*memory).version };
        let told = Memory { version, total, reserved: 0, free: total.saturating_sub(used), used };
        // SAFETY: as the caller promises.
        unsafe { memory.write(told) };
        DONE
    })
}

/// NVML's `nvmlDeviceGetComputeRunningProcesses_v3`.
///
/// # Safety
/// The list has room for `count` items, or is null and `count` is 0.
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
        // SAFETY: as the caller promises.
        let room = unsafe { count.replace(held.len() as u32) };
        if (room as usize) < held.len() {
            return INSUFFICIENT_SIZE;
        }
        for (i, (pid, used)) in held.into_iter().enumerate() {
            // SAFETY: the list has room for all items.
            unsafe { list.add(i).write(Process { pid, used, instance: u32::MAX, compute_instance: u32::MAX }) };
        }
        DONE
    })
}

/// `nvmlDeviceGetGraphicsRunningProcesses_v3` of NVML: there are no graphics processes.
///
/// # Safety
/// The first pointer may be written.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    _device: usize,
    count: *mut u32,
    _list: *mut Process,
) -> u32 {
    // SAFETY: as the caller promises.
    unsafe { count.write(0) };
    DONE
}
