//! The device of a file that a command is about.

use trace::DeviceTrace;

/// Returns the index of the device with a number, or else of the first one with events.
pub(super) fn choose(wanted: Option<i64>, devices: &[DeviceTrace]) -> Result<usize, String> {
    if let Some(number) = wanted {
        let found = devices.iter().position(|trace| trace.device == number);
        return found.ok_or_else(|| format!("There is no device {number}. The file has: {}.", numbers(devices)));
    }
    let found = devices.iter().position(|trace| !trace.events.is_empty());
    Ok(found.or((!devices.is_empty()).then_some(0)).ok_or("The file has no device.")?)
}

/// Returns the numbers of devices as text.
pub(super) fn numbers(devices: &[DeviceTrace]) -> String {
    devices.iter().map(|trace| trace.device.to_string()).collect::<Vec<_>>().join(", ")
}
