//! The lines at the end of a watched job: the peak and when, the largest lines then, and what was lost.

use std::time::{Duration, Instant};

use format::import::Importer;
use report::{DeviceReport, FileReport};
use tokio::time::sleep;
use trace::limits::ImportLimits;
use trace::units::{Bytes, Count, Micros, counted};

use crate::remote::{Listed, Remote};

/// The longest wait for the rest of a job's events after its end.
const REST: Duration = Duration::from_secs(3);
/// The time between two looks at the server.
const LOOK: Duration = Duration::from_millis(50);
/// The largest session that is downloaded to say what held its memory, in bytes of the store.
const MOST_BYTES: u64 = 256 << 20;
/// The most sessions of a job that are looked into.
const MOST: usize = 64;
/// Lines of code that are named.
const LINES: usize = 3;

/// Returns the lines to print about a job that has ended: none if no session of it reached the server, and `None` if the token
/// may not read.
pub(super) async fn summary(remote: &Remote, job: &str) -> Result<Option<Vec<String>>, String> {
    let Some(sessions) = ended(remote, job).await? else { return Ok(None) };
    if sessions.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut highest: Option<(u64, Option<u32>, DeviceReport)> = None;
    for session in sessions.iter().filter(|session| session.bytes <= MOST_BYTES).take(MOST) {
        // A job that was killed may have left nothing to download.
        let Ok(bytes) = remote.trace_of(&session.id).await else { continue };
        for device in report(&bytes)?.devices {
            let peak = device.peak.requested_bytes;
            if highest.as_ref().is_none_or(|(most, ..)| peak > *most) {
                highest = Some((peak, session.rank.filter(|_| sessions.len() > 1), device));
            }
        }
    }
    let mut lines = Vec::new();
    match highest {
        Some((_, rank, device)) => {
            lines.extend([peak(rank, &device), largest(&device)]);
            if device.diagnosis.failed > 0 {
                let verdict = &device.verdict;
                lines.push(verdict.in_brief().to_owned());
                lines.extend(verdict.remedies.first().map(|remedy| format!("{}: {}", remedy.mark(), remedy.text)));
            }
        }
        None if sessions.iter().any(|session| session.bytes > MOST_BYTES) => {
            lines.push(format!("The recording is larger than {}: open the link for its peak", Bytes(MOST_BYTES)));
        }
        None => lines.push("No event arrived before the job ended".to_owned()),
    }
    lines.push(delivered(&sessions));
    Ok(Some(lines))
}

/// Returns the sessions of a job, once all have ended or the time is up; `None` if the token may not read.
async fn ended(remote: &Remote, job: &str) -> Result<Option<Vec<Listed>>, String> {
    let begun = Instant::now();
    loop {
        let Some(sessions) = remote.sessions_of(job).await? else { return Ok(None) };
        if !sessions.iter().any(Listed::is_live) || begun.elapsed() > REST {
            return Ok(Some(sessions));
        }
        sleep(LOOK).await;
    }
}

fn report(bytes: &[u8]) -> Result<FileReport, String> {
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(bytes).map_err(|error| error.to_string())?;
    Ok(FileReport::new(String::new(), importer.finish().map_err(|error| error.to_string())?))
}

fn peak(rank: Option<u32>, device: &DeviceReport) -> String {
    let bytes = Bytes(device.peak.requested_bytes);
    let whose = rank.map_or_else(String::new, |rank| format!(", of rank {rank}"));
    match device.peak.event {
        Some(_) => {
            let time = Micros(device.peak.since_start_us);
            format!("Peak {bytes}{whose}, {time} after the first event")
        }
        None => format!("Peak {bytes}{whose}, before the recording began"),
    }
}

fn largest(device: &DeviceReport) -> String {
    let lines: Vec<String> =
        device.peak_lines.iter().take(LINES).map(|line| format!("{} {}", Bytes(line.bytes), line.label)).collect();
    if lines.is_empty() {
        "Nothing was allocated then".to_owned()
    } else {
        format!("Largest then: {}", lines.join("; "))
    }
}

fn delivered(sessions: &[Listed]) -> String {
    let events = counted(sessions.iter().map(|session| session.events).sum(), "event");
    let lost: u64 = sessions.iter().map(|session| session.lost).sum();
    let open = sessions.iter().filter(|session| session.state != "ended").count();
    let of = if sessions.len() > 1 { format!(" of {} processes", sessions.len()) } else { String::new() };
    match (lost, open) {
        (0, 0) => format!("{events}{of}, nothing lost"),
        (0, _) => format!(
            "{events}{of}; the end of {} is missing, because the job ended too suddenly",
            counted(open as u64, "recording")
        ),
        (lost, _) => format!("{events}{of}; {} lost. The page shows where", Count(lost)),
    }
}
