//! The functions with which a test controls the library.

use std::ffi::{CStr, c_char};

use crate::code::Outcome;
use crate::faults::Fault;
use crate::machine::machine;

/// Sets a device's capacity in bytes. Existing allocations stay.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fakecuda_set_capacity(device: u32, bytes: u64) {
    if let Ok(device) = machine().device(device as usize) {
        device.capacity = bytes;
    }
}

/// Refuses the next `count` requests for memory of a device, through any function.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fakecuda_refuse(device: u32, count: u32) {
    if let Ok(device) = machine().device(device as usize) {
        device.refusals = count;
    }
}

/// Returns where the addresses of a device's memory begin; 0 without the device.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fakecuda_memory_base(device: u32) -> u64 {
    machine().device(device as usize).map_or(0, |device| device.memory_base())
}

/// Returns where the addresses that a program reserves begin; 0 without the device.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fakecuda_ranges_base(device: u32) -> u64 {
    machine().device(device as usize).map_or(0, |device| device.base)
}

/// Returns the used bytes of a device, over all processes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fakecuda_used(device: u32) -> u64 {
    machine().device(device as usize).map_or(0, |device| device.used)
}

/// Holds a stream (1) or resumes it (0). The work of a held stream is done only when it is waited for. The handle 0 is
/// the default stream of device 0.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fakecuda_hold(stream: usize, is_held: u32) {
    let mut machine = machine();
    if stream == 0 {
        machine.streams.streams.entry((0, 0)).or_default();
    }
    for (key, state) in &mut machine.streams.streams {
        if key.1 == stream && (stream != 0 || key.0 == 0) {
            state.is_held = is_held != 0;
        }
    }
    machine.run();
}

/// Makes `times` calls of a symbol fail with `code`, after `after` others.
///
/// # Safety
/// `symbol` ends in a zero byte.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fakecuda_fail(symbol: *const c_char, after: u32, times: u32, code: u32) {
    // SAFETY: as the caller promises.
    let symbol = unsafe { text(symbol) };
    machine().faults.plan(Fault { symbol, after, times, code });
}

/// Returns the number of calls of a symbol.
///
/// # Safety
/// `symbol` ends in a zero byte.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fakecuda_calls(symbol: *const c_char) -> u64 {
    // SAFETY: as the caller promises.
    let symbol = unsafe { text(symbol) };
    machine().faults.calls(&symbol)
}

/// Returns the number of existing allocations, ranges, pages, contexts, streams, events and pools.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fakecuda_leftovers() -> u64 {
    machine().leftovers() as u64
}

/// Returns 1 if the device can access all of a range now, or else 0.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fakecuda_is_open(address: u64, size: u64) -> u32 {
    let outcome: Outcome = machine().check(address, size);
    u32::from(outcome.is_ok())
}

/// # Safety
/// The text ends in a zero byte.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
