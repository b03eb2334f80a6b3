//! The header of a trace whose file has none.

use crate::format::{Device, Header};
use crate::trace::{DeviceTrace, Snapshot};

/// Describes a trace from a file that has no header: a pickle or JSON.
pub fn header_of(name: &str, snapshot: &Snapshot) -> Header {
    let Snapshot { devices, settings, .. } = snapshot;
    let device = |number| Device { number, ..Device::default() };
    Header {
        program: concat!("vramscope ", env!("CARGO_PKG_VERSION")).to_owned(),
        name: name.to_owned(),
        clock: "system".to_owned(),
        started_us: devices.iter().map(DeviceTrace::start_us).filter(|us| *us > 0).min().unwrap_or(0),
        devices: devices.iter().map(|trace| device(trace.device)).collect(),
        settings: settings.clone(),
        ..Header::default()
    }
}
