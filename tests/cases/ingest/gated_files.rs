//! Files in memory whose calls can be held up, as a disk or a network does, and are counted.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vramscope::store::files::{Entry, Files, MemoryFiles, OpenFile};

/// A call of [`Files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    List,
    Read,
    Create,
    Rename,
    Remove,
}

/// Files in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct GatedFiles {
    files: MemoryFiles,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

#[derive(Debug, Default)]
struct Gate {
    /// What is held up: calls of this kind, for paths that begin so.
    closed: Option<(Call, String)>,
    waiting: usize,
    calls: Vec<(Call, String)>,
}

impl GatedFiles {
    /// Returns the files without a gate.
    pub(crate) fn memory(&self) -> &MemoryFiles {
        &self.files
    }

    /// Holds up calls for paths that begin with `prefix`, until [`Self::open`].
    pub(crate) fn close(&self, call: Call, prefix: &str) {
        self.lock().closed = Some((call, prefix.to_owned()));
    }

    /// Lets every call pass.
    pub(crate) fn open(&self) {
        self.lock().closed = None;
        self.gate.1.notify_all();
    }

    /// Waits until a call is held up. Returns whether one is, within a minute.
    pub(crate) fn is_waited_for(&self) -> bool {
        let gate = self.gate.1.wait_timeout_while(self.lock(), Duration::from_secs(60), |gate| gate.waiting == 0);
        gate.is_ok_and(|(gate, _)| gate.waiting > 0)
    }

    /// Forgets what was called so far, and returns it.
    pub(crate) fn take_calls(&self) -> Vec<(Call, String)> {
        std::mem::take(&mut self.lock().calls)
    }

    fn lock(&self) -> MutexGuard<'_, Gate> {
        self.gate.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, call: Call, path: &str) {
        let mut gate = self.lock();
        gate.calls.push((call, path.to_owned()));
        let is_closed = |gate: &mut Gate| {
            gate.closed.as_ref().is_some_and(|(closed, prefix)| *closed == call && path.starts_with(prefix))
        };
        if is_closed(&mut gate) {
            gate.waiting += 1;
            self.gate.1.notify_all();
            gate = self.gate.1.wait_while(gate, is_closed).unwrap_or_else(PoisonError::into_inner);
            gate.waiting -= 1;
        }
    }
}

impl Files for GatedFiles {
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.pass(Call::List, folder);
        self.files.list(folder)
    }

    fn read(&self, path: &str, from: u64, most: usize) -> io::Result<Vec<u8>> {
        self.pass(Call::Read, path);
        self.files.read(path, from, most)
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
        self.pass(Call::Create, path);
        self.files.create(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.pass(Call::Rename, to);
        self.files.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.pass(Call::Remove, path);
        self.files.remove(path)
    }

    fn remove_folder(&self, folder: &str) -> io::Result<()> {
        self.files.remove_folder(folder)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.files.sync_folder(folder)
    }
}
