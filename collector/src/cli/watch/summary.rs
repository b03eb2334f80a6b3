//! The lines at the end of a watched job: the peak and when, the largest lines then, and what was lost.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use report::{DeviceReport, FileReport};
use tokio::time::sleep;
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
    let mut highest = None;
    for session in sessions.iter().filter(|session| session.bytes <= MOST_BYTES).take(MOST) {
        // A job that was killed may have left nothing to download.
        let Ok(bytes) = remote.trace_of(&session.id).await else { continue };
        highest = higher(highest, session.rank.filter(|_| sessions.len() > 1), FileReport::read(&bytes)?);
    }
    let mut lines = match highest {
        Some(highest) => told(highest),
        None if sessions.iter().any(|session| session.bytes > MOST_BYTES) => {
            vec![format!("The recording is larger than {}: open the link for its peak", Bytes(MOST_BYTES))]
        }
        None => vec!["No event arrived before the job ended".to_owned()],
    };
    lines.push(delivered(&sessions));
    Ok(Some(lines))
}

/// Returns the lines about what processes wrote into files of this machine. What can't be read is left out: `doctor` tells why.
pub(super) fn of_files(files: &[PathBuf]) -> Vec<String> {
    let is_small = |path: &&PathBuf| fs::metadata(path).is_ok_and(|file| file.len() <= MOST_BYTES);
    let reports =
        files.iter().filter(is_small).take(MOST).filter_map(|path| FileReport::read(&fs::read(path).ok()?).ok());
    reports.fold(None, |highest, report| higher(highest, None, report)).map(told).unwrap_or_default()
}

/// The device that needed most, with the rank of its process if there are several.
type Highest = (Option<u32>, DeviceReport);

fn higher(mut highest: Option<Highest>, rank: Option<u32>, report: FileReport) -> Option<Highest> {
    for device in report.devices {
        let peak = device.peak.requested_bytes;
        if highest.as_ref().is_none_or(|(_, other)| peak > other.peak.requested_bytes) {
            highest = Some((rank, device));
        }
    }
    highest
}

/// Returns the lines about a device: why memory ran out and what to do, or else its peak.
fn told((rank, device): Highest) -> Vec<String> {
    if device.diagnosis.failed == 0 {
        return vec![peak(rank, &device), largest(&device)];
    }
    let mut lines: Vec<String> = device.diagnosis.brief().lines().map(str::to_owned).collect();
    lines.push(peak(rank, &device));
    lines
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
