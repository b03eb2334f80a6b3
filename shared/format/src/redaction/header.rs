//! The header of a trace whose file has none.

use crate::{Device, Fault, Header};
use query::finding::{Finding, FindingCode, lacks_end};
use trace::limits::HEADER_FAULTS;
use trace::{DeviceTrace, Snapshot};

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

/// Notes in a header what was wrong with the file that it describes, so that a copy still tells it.
pub fn note_faults(header: &mut Header, findings: &[Finding]) {
    for finding in findings {
        let is_cut = lacks_end(std::slice::from_ref(finding));
        let is_fault = is_cut || finding.code == FindingCode::Malformed;
        // Those of an earlier copy are there already.
        let is_known = header.faults.iter().any(|fault| fault.finding().message == finding.message);
        if is_fault && !is_known && header.faults.len() < HEADER_FAULTS as usize {
            header.faults.push(Fault { is_cut, message: finding.message.clone() });
        }
    }
}
