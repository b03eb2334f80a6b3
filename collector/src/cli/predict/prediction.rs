//! What a run without a GPU says of the memory that the program needs: by rank and device, and whether it fits.

use std::path::Path;

use format::Header;
use format::import::Imported;
use query::own_rules::OwnRules;
use query::whatif::Outcome;
use report::{DeviceReport, FileReport};
use serde::Serialize;
use trace::{DeviceTrace, Snapshot};
use whatif::CONTEXT;

use super::super::progress::Progress;
use super::super::read::read;
use super::super::subject::Subject;
use super::super::tune::{GoalName, Printed};
use super::found::{DeviceCounters, Ended, Found};
use super::rehearsal::Rehearsed;
use super::target::Target;

/// The ranks of a prediction.
#[derive(Debug, Default, Serialize)]
pub(super) struct Prediction {
    /// By rank.
    pub(super) processes: Vec<Process>,
    /// The exit status with which the program told that it failed, where no process says why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failed_with: Option<i32>,
    /// The device where several processes need most together; `None` if each has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shared: Option<SharedDevice>,
}

/// A device that several processes use at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct SharedDevice {
    /// The bytes that they need together if all have their peaks at once, with the context of each but the first.
    pub(super) needs: u64,
    /// The device's number.
    pub(super) device: i64,
    /// The number of processes.
    pub(super) processes: usize,
}

impl SharedDevice {
    /// Returns the device where processes need most together, of their uses of devices: the number, when it began and ended, and the
    /// bytes. Those that follow one another don't share it.
    fn of(uses: &[(i64, (i64, i64), u64)]) -> Option<Self> {
        // Most are there when one begins.
        let at = |(device, (begin, _), _): (i64, (i64, i64), u64)| {
            let there =
                || uses.iter().filter(|(other, (from, to), _)| *other == device && (*from..=*to).contains(&begin));
            let processes = there().count();
            let contexts = CONTEXT * processes.saturating_sub(1) as u64;
            Self { needs: there().map(|(.., needs)| needs).sum::<u64>() + contexts, device, processes }
        };
        uses.iter().map(|one| at(*one)).filter(|shared| shared.processes > 1).max()
    }
}

/// A process that used the GPU.
#[derive(Debug, Serialize)]
pub(super) struct Process {
    #[serde(flatten)]
    pub(super) found: Found,
    /// The path of its recording; `None` if it allocated nothing.
    pub(super) recording: Option<String>,
    pub(super) memory: Vec<DeviceMemory>,
}

/// The memory of a process on one device.
#[derive(Debug, Serialize)]
pub(super) struct DeviceMemory {
    pub(super) device: i64,
    /// PyTorch's counters at the peak.
    pub(super) peak_allocated: u64,
    pub(super) peak_reserved: u64,
    /// Requests that failed.
    pub(super) out_of_memory: u64,
    /// The least memory with which the process runs as far as it ran, in bytes.
    pub(super) needs: u64,
    /// When its first and its last event were, in microseconds.
    #[serde(skip)]
    pub(super) span: (i64, i64),
    /// The allocator's settings.
    pub(super) conf: String,
    /// The run under these settings, on the device that it ran on.
    pub(super) outcome: Outcome,
    pub(super) report: DeviceReport,
}

impl Prediction {
    /// Reads the recordings of a run. The error is a sentence for people.
    pub(super) fn of(rehearsed: &Rehearsed, target: Target) -> Result<Self, String> {
        let read_one = |found: &Found| Process::read(found, &rehearsed.folder, target);
        let processes: Vec<Process> = rehearsed.processes.iter().map(read_one).collect::<Result<_, _>>()?;
        let failed_with = rehearsed.status.code().filter(|code| *code != 0);
        let all = processes.iter().flat_map(|process| &process.memory);
        let uses: Vec<_> = all.map(|memory| (memory.device, memory.span, memory.needs)).collect();
        let shared = SharedDevice::of(&uses);
        Ok(Self { processes, failed_with, shared })
    }

    /// Returns the process and the device that need most.
    pub(super) fn largest(&self) -> Option<(&Process, &DeviceMemory)> {
        let all = self.processes.iter().flat_map(|process| process.memory.iter().map(move |memory| (process, memory)));
        all.max_by_key(|(_, memory)| (memory.out_of_memory > 0, memory.needs))
    }

    /// Whether the program ended for lack of memory. One that goes on after a request failed, as with a smaller batch, did not.
    pub(super) fn has_failed(&self) -> bool {
        let refused = self.refused() > 0;
        self.processes.iter().any(|process| process.found.ended == Ended::OutOfMemory)
            || (refused && self.failed_with.is_some())
    }

    /// Returns how many requests failed.
    pub(super) fn refused(&self) -> u64 {
        let all = self.processes.iter().flat_map(|process| &process.memory);
        all.map(|memory| memory.out_of_memory).sum()
    }

    /// Returns the error that ended a process, if it was another than that memory ran out.
    pub(super) fn error(&self) -> Option<String> {
        let failed = self.processes.iter().filter(|process| process.found.ended == Ended::Error);
        // A launcher, which has no rank, only says that one of its processes failed.
        let failed = failed.min_by_key(|process| process.found.rank.is_none());
        let error = failed.and_then(|process| process.found.error.clone());
        let status = self.failed_with.filter(|_| !self.has_failed());
        error.or_else(|| status.map(|code| format!("it ended with status {code}")))
    }
}

impl Process {
    fn read(found: &Found, folder: &Path, target: Target) -> Result<Self, String> {
        let Some(path) = found.recording(folder) else {
            return match found.devices.iter().any(|counters| counters.reserved > 0) {
                true => Err(format!("The {} was not recorded; what the recorder said is above.", found.name())),
                false => Ok(Self { found: found.clone(), recording: None, memory: Vec::new() }),
            };
        };
        let imported = read(&path)?;
        let _progress = Progress::new(format!("Looking into {}", found.name()));
        // A device on which nothing was requested may have other events: a job of several ranks finds those of the others.
        let counters = |device: i64| -> Option<DeviceCounters> {
            found.devices.iter().copied().find(|counters| counters.device == device && counters.reserved > 0)
        };
        let mut subjects = Vec::new();
        let Imported { mut snapshot, header, .. } = imported;
        let header = header.unwrap_or_default();
        for index in 0..snapshot.devices.len() {
            let is_used = |trace: &DeviceTrace| !trace.events.is_empty() && counters(trace.device).is_some();
            if snapshot.devices.get(index).is_some_and(is_used) {
                subjects.push((span(&snapshot, index), subject(&mut snapshot, index, &header, target)?));
            }
        }
        let shown = path.display().to_string();
        // A report takes what was imported.
        let report = FileReport::with(shown.clone(), read(&path)?, OwnRules::default());
        let mut memory = Vec::new();
        for mut report in report.devices {
            // Of the process without a GPU: its own memory is another than with one.
            report.outside = None;
            let found = subjects.iter().find(|(_, subject)| subject.device == report.device);
            let Some((span, subject)) = found else { continue };
            let counters = counters(report.device).unwrap_or_default();
            memory.push(DeviceMemory {
                device: report.device,
                peak_allocated: counters.allocated,
                peak_reserved: counters.reserved,
                out_of_memory: counters.out_of_memory,
                needs: subject.smallest_capacity(&subject.conf)?,
                span: *span,
                conf: subject.conf.clone(),
                outcome: subject.run(&subject.conf)?,
                report,
            });
        }
        Ok(Self { found: found.clone(), recording: Some(shown), memory })
    }
}

/// Returns when the first and the last event of a device were, in microseconds.
fn span(snapshot: &Snapshot, index: usize) -> (i64, i64) {
    let times = || snapshot.devices.get(index).into_iter().flat_map(|trace| trace.events.time_us.iter());
    (times().min().unwrap_or(0), times().max().unwrap_or(0))
}

/// Searches for the settings that serve a device's requests best.
pub(super) fn tuned(recording: &Path, device: i64, target: Target, goal: GoalName) -> Result<Printed, String> {
    let Imported { mut snapshot, header, .. } = read(recording)?;
    let index = snapshot.devices.iter().position(|trace| trace.device == device).unwrap_or(0);
    let subject = subject(&mut snapshot, index, &header.unwrap_or_default(), target)?;
    Printed::new(recording.display().to_string(), subject, goal)
}

/// Returns the run of a device, on the device that it ran on.
fn subject(snapshot: &mut Snapshot, index: usize, header: &Header, target: Target) -> Result<Subject, String> {
    let mut subject = Subject::of(snapshot, index, header, None)?;
    (subject.capacity, subject.is_capacity_inferred) = (target.room, false);
    Ok(subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_on_one_device_need_their_sum_if_they_run_at_the_same_time() {
        let shared = |needs, device, processes| {
            Some(SharedDevice { needs: needs + CONTEXT * (processes as u64 - 1), device, processes })
        };
        for (uses, want) in [
            (vec![], None),
            (vec![(0, (0, 9), 5), (1, (0, 9), 5)], None),
            // One after the other.
            (vec![(0, (0, 4), 5), (0, (5, 9), 5)], None),
            (vec![(0, (0, 5), 5), (0, (5, 9), 7)], shared(12, 0, 2)),
            (vec![(0, (0, 9), 5), (1, (0, 9), 1), (1, (3, 4), 6), (1, (7, 8), 2)], shared(7, 1, 2)),
            (vec![(0, (0, 9), 1), (0, (1, 9), 1), (0, (2, 9), 1)], shared(3, 0, 3)),
        ] {
            assert_eq!(SharedDevice::of(&uses), want, "{uses:?}");
        }
    }
}
