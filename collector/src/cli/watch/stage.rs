//! How far the recorder has come in a job: it leaves an empty file in a folder for each stage that a process reaches.

use std::fs::{self, DirBuilder};
use std::path::{Path, PathBuf};

/// How far the recorder has come in the process in which it has come farthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// No process on this machine has loaded it.
    Absent,
    /// It waits for PyTorch.
    Started,
    /// PyTorch is loaded.
    Torch,
    /// PyTorch uses the GPU.
    Gpu,
}

/// The folder, which is deleted when this is dropped.
pub(super) struct Stages(PathBuf);

impl Stages {
    /// Creates the folder; `None` if that is not possible, so that nothing will be known.
    pub(super) fn new() -> Option<Self> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).ok()?;
        let path = std::env::temp_dir().join(format!("vramscope-{:016x}", u64::from_ne_bytes(bytes)));
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).ok()?;
        Some(Self(path))
    }

    /// Returns the folder.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns how far the recorder has come.
    pub(super) fn reached(&self) -> Stage {
        let stages = [(Stage::Gpu, "gpu"), (Stage::Torch, "torch"), (Stage::Started, "started")];
        let reached = stages.into_iter().find(|(_, name)| self.0.join(name).exists());
        reached.map_or(Stage::Absent, |(stage, _)| stage)
    }
}

impl Drop for Stages {
    fn drop(&mut self) {
        // A process of the job that still runs has no use for it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farthest_stage_counts() {
        let stages = Stages::new().unwrap();
        assert_eq!(stages.reached(), Stage::Absent);
        for (name, stage) in [("started", Stage::Started), ("gpu", Stage::Gpu), ("torch", Stage::Gpu)] {
            fs::write(stages.path().join(name), "").unwrap();
            assert_eq!(stages.reached(), stage);
        }
        let path = stages.path().to_owned();
        drop(stages);
        assert!(!path.exists());
    }
}
