//! What a process of the program found out while it ran: the file that it wrote at its end.

use std::fs;
use std::path::{Path, PathBuf};

use format::EXTENSION;
use serde::{Deserialize, Serialize};

/// What a process found, as `_predict/start.py` writes it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Found {
    pub(super) pid: u32,
    /// Its rank, and the number of ranks, if it is one of several.
    pub(super) rank: Option<u64>,
    pub(super) world: Option<u64>,
    /// Why it ended.
    pub(super) ended: Ended,
    /// The error that ended it, with its type.
    pub(super) error: Option<String>,
    /// The optimizer steps that it made.
    pub(super) steps: u64,
    /// Its devices, by number.
    pub(super) devices: Vec<DeviceCounters>,
    /// Whether convolutions ran, for which cuDNN takes workspaces.
    #[serde(default)]
    pub(super) convolutions: bool,
    /// Where it read values from the GPU.
    pub(super) readbacks: Vec<Readback>,
}

/// Why a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ended {
    /// By itself.
    #[default]
    Exit,
    /// By an exception.
    Error,
    /// By an exception because memory ran out.
    #[serde(alias = "out of memory")]
    OutOfMemory,
    /// After as many steps as were asked for.
    Steps,
    /// After two steps in a row with the same peak.
    #[serde(alias = "same peak")]
    SamePeak,
    /// When its time was over.
    Time,
    /// In a loop that waits for a made-up value to change.
    Loop,
}

/// PyTorch's counters of a device, in bytes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct DeviceCounters {
    pub(super) device: i64,
    /// At the peak.
    pub(super) allocated: u64,
    pub(super) reserved: u64,
    /// Requests that failed.
    pub(super) out_of_memory: u64,
}

/// A line that read values from the GPU.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Readback {
    /// The line; `None` where no code of the program's own is on the stack.
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
    /// The operation, such as `item`.
    pub(super) op: String,
    pub(super) count: u64,
    /// Whether a value was made up: no kernel computed it.
    pub(super) made_up: bool,
}

impl Found {
    /// Reads what the processes wrote into a folder, by rank. A file that can't be read is one of a process that was killed
    /// while it wrote.
    pub(super) fn in_folder(folder: &Path) -> Vec<Self> {
        let files = names(folder).filter(|(_, name)| name.starts_with("rank-") && name.ends_with(".json"));
        let texts = files.filter_map(|(path, _)| fs::read(path).ok());
        let mut all: Vec<Self> = texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect();
        all.sort_by_key(|found| (found.rank, found.pid));
        all
    }

    /// Returns its recording in a folder; `None` if it has none.
    pub(super) fn recording(&self, folder: &Path) -> Option<PathBuf> {
        let end = format!("-{}.{EXTENSION}", self.pid);
        names(folder).find(|(_, name)| name.ends_with(&end)).map(|(path, _)| path)
    }

    /// Whether it was ended before the program would have ended it.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.ended, Ended::Steps | Ended::SamePeak | Ended::Time | Ended::Loop)
    }

    /// Returns what people call the process: by its rank.
    pub(super) fn name(&self) -> String {
        match (self.rank, self.world) {
            (Some(rank), Some(world)) => format!("rank {rank} of {world}"),
            _ => format!("process {}", self.pid),
        }
    }
}

/// Returns the files in a folder with their names.
fn names(folder: &Path) -> impl Iterator<Item = (PathBuf, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_processes_wrote_is_read_and_half_a_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(
            "rank-7.json",
            r#"{"pid": 7, "rank": 1, "world": 2, "torch": "2.11.0", "ended": "same peak", "error": null, "steps": 3,
                "devices": [{"device": 0, "allocated": 5, "reserved": 9, "allocated_now": 1, "out_of_memory": 0}],
                "readbacks": [{"file": "a.py", "line": 3, "op": "item", "count": 2, "made_up": true}]}"#,
        );
        write(
            "rank-9.json",
            r#"{"pid": 9, "rank": 0, "world": 2, "ended": "out of memory", "error": "x", "steps": 0,
            "devices": [], "readbacks": []}"#,
        );
        write("rank-8.json", r#"{"pid": 8, "#);
        write("train.py-1-7.vramscope", "");
        let all = Found::in_folder(folder.path());
        let known: Vec<_> = all.iter().map(|found| (found.pid, found.ended, found.name())).collect();
        let wanted =
            [(9, Ended::OutOfMemory, "rank 0 of 2".to_owned()), (7, Ended::SamePeak, "rank 1 of 2".to_owned())];
        assert_eq!(known, wanted);
        let recordings = all.iter().map(|found| found.recording(folder.path()).is_some());
        assert!(recordings.eq([false, true]));
    }
}
