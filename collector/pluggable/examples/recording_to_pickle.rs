//! Converts a recording to a pickle in PyTorch's format, and prints what the pickle cannot hold as JSON. For the Python
//! tests.
//!
//! `recording_to_pickle RECORDING PICKLE`

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use format::import::Importer;
use serde_json::json;
use trace::DeviceTrace;
use trace::limits::ImportLimits;

fn convert(from: &str, to: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(&fs::read(from)?)?;
    let imported = importer.finish()?;
    let mut file = BufWriter::new(File::create(to)?);
    let mut failure = None;
    format::export::pickle(&imported.snapshot, &mut |bytes| {
        if let Err(error) = file.write_all(bytes) {
            failure = Some(error);
        }
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    file.flush()?;
    let device = |device: &DeviceTrace| {
        json!({
            "device": device.device,
            "events": device.events.len(),
            "losses": device.losses.iter().map(|loss| json!([loss.position, loss.events, loss.by_action])).collect::<Vec<_>>(),
            "samples": device.samples.iter().map(|s| json!([s.time_us, s.allocated, s.active, s.reserved])).collect::<Vec<_>>(),
            "outside": device.outside.iter().map(|s| json!([s.time_us, s.values()])).collect::<Vec<_>>(),
            "marks": device.annotations.len(),
        })
    };
    let header = imported.header.map(|header| {
        json!({
            "name": header.name,
            "job": header.job,
            "host": header.host,
            "rank": header.rank,
            "torch": header.torch,
            "devices": header.devices.len(),
        })
    });
    let findings: Vec<String> = imported.findings.iter().map(|finding| finding.message.clone()).collect();
    let devices: Vec<_> = imported.snapshot.devices.iter().map(device).collect();
    Ok(json!({ "header": header, "devices": devices, "findings": findings }).to_string())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = arguments.as_slice() else {
        eprintln!("Usage: recording_to_pickle RECORDING PICKLE");
        return ExitCode::from(2);
    };
    match convert(from, to) {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{from}: {error}");
            ExitCode::FAILURE
        }
    }
}
