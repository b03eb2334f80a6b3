//! A recording's file. A full disk loses events, but neither the file nor the job.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use format::{ChunkScanner, Kind, Piece};
use trace::limits::{FULL_DISK_BYTES, FULL_DISK_MILLIS};

use super::output::{Output, Unwritten};
use crate::disk;

/// The time between two attempts to write to a full disk.
const RETRY: Duration = Duration::from_millis(FULL_DISK_MILLIS);

/// A file that grows chunk by chunk.
///
/// While its disk is full, it has no room for events. The chunks that did not fit, and what makes the rest readable, wait in
/// memory and are written once there is space.
#[derive(Debug)]
pub struct FileOutput {
    file: File,
    path: PathBuf,
    /// Whether the file was created here.
    is_new: bool,
    /// Bytes written: whole chunks.
    length: u64,
    /// Chunks that wait for space.
    waiting: Vec<u8>,
    /// Events in them.
    waiting_events: u64,
    /// Events in the next bytes.
    announced: u64,
    /// When the disk was last found full.
    tried: Instant,
    condition: FileCondition,
}

/// The condition of a file, which can be asked at any time. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct FileCondition(Arc<Mutex<Condition>>);

#[derive(Debug, Default)]
struct Condition {
    full: Option<String>,
    was_full: bool,
    missing: u64,
    failure: Option<String>,
}

impl FileCondition {
    fn lock(&self) -> MutexGuard<'_, Condition> {
        // Every change under the lock is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why the file has no room now, if it has none.
    pub fn full(&self) -> Option<String> {
        self.lock().full.clone()
    }

    /// Returns why the file ends before the recording, if it does.
    pub fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    /// Returns a sentence about a file that is complete but for the time in which its disk was full; `lost` events are known
    /// to the recorder as lost.
    pub fn gap(&self, lost: u64) -> Option<String> {
        let condition = self.lock();
        let events = trace::units::counted(lost + condition.missing, "event");
        let is_gap = condition.was_full && lost + condition.missing > 0;
        is_gap.then(|| format!("its disk was full for a time, and {events} in all are missing; the file says where"))
    }

    /// Notes that nothing more is written.
    pub(super) fn fail(&self, error: &io::Error) {
        self.lock().failure.get_or_insert_with(|| disk::why(error));
    }
}

impl FileOutput {
    /// Creates the file, or empties an existing one. Errs if another recorder is writing to it.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let (file, is_new) = match options.write(true).create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (OpenOptions::new().write(true).create(true).truncate(false).open(path)?, false)
            }
            created => (created.map_err(|error| io::Error::new(error.kind(), disk::why_not_created(&error)))?, true),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another recorder is writing to it"));
            }
            // Some file systems do not support locks.
            Err(TryLockError::Error(_)) => {}
        }
        // A pipe or a device can be written but has no length to set.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            is_new,
            length: 0,
            waiting: Vec::new(),
            waiting_events: 0,
            announced: 0,
            tried: Instant::now(),
            condition: FileCondition::default(),
        })
    }

    /// Returns the condition of the file, now and later.
    pub fn condition(&self) -> FileCondition {
        self.condition.clone()
    }

    /// Writes all of the bytes or, as far as possible, none.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match &written {
            Ok(()) => self.length += bytes.len() as u64,
            // A partial write is cut off, so that the file ends with a whole chunk, and the next one begins there. If that
            // fails too, readers step over the torn chunk.
            Err(_) => drop(self.file.set_len(self.length).and_then(|()| self.file.seek(io::SeekFrom::End(0)))),
        }
        written.map_err(|error| io::Error::new(error.kind(), disk::why(&error)))
    }

    /// Writes what waits.
    fn write_waiting(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let written = self.write(&waiting);
        if written.is_ok() {
            self.waiting_events = 0;
            self.condition.lock().full = None;
        } else {
            self.waiting = waiting;
            self.tried = Instant::now();
        }
        written
    }

    /// Keeps chunks until there is space.
    fn keep(&mut self, bytes: &[u8], events: u64) -> io::Result<()> {
        if self.waiting.len() + bytes.len() <= FULL_DISK_BYTES {
            self.waiting.extend_from_slice(bytes);
            self.waiting_events += events;
            return Ok(());
        }
        // Readers see from the sequence numbers how many are missing.
        self.condition.lock().missing += events;
        self.waiting.extend(without(bytes, &[Kind::Events]));
        let is_too_much = self.waiting.len() > 2 * FULL_DISK_BYTES;
        if is_too_much { Err(io::Error::new(io::ErrorKind::StorageFull, "the disk is full")) } else { Ok(()) }
    }
}

/// Returns the chunks without those of some kinds.
fn without(bytes: &[u8], kinds: &[Kind]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunks = ChunkScanner::at_chunk(0);
    chunks.push(bytes);
    while let Some(piece) = chunks.next_piece() {
        if let Piece::Chunk(_, chunk) = piece
            && !kinds.iter().any(|kind| chunk.is(*kind))
        {
            kept.extend_from_slice(chunk.bytes);
        }
    }
    kept
}

impl Output for FileOutput {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let events = std::mem::take(&mut self.announced);
        let rest;
        let bytes = if self.condition.lock().missing > 0 {
            // Chunks were left out, so an index would be wrong.
            rest = without(bytes, &[Kind::Index, Kind::Trailer]);
            &rest
        } else {
            bytes
        };
        if !self.has_room() {
            return self.keep(bytes, events);
        }
        match self.write(bytes) {
            // The caller has just named the file: it gets the error, and no empty file is left.
            Err(error) if self.length == 0 => {
                if self.is_new {
                    // Nothing depends on its removal.
                    let _ = fs::remove_file(&self.path);
                }
                Err(error)
            }
            Err(error) if disk::is_full(&error) => {
                let mut condition = self.condition.lock();
                (condition.full, condition.was_full) = (Some(error.to_string()), true);
                drop(condition);
                self.tried = Instant::now();
                self.keep(bytes, events)
            }
            written => written,
        }
    }

    fn has_room(&mut self) -> bool {
        self.waiting.is_empty() || self.tried.elapsed() >= RETRY && self.write_waiting().is_ok()
    }

    fn is_draining(&self) -> bool {
        // Somebody has to make room.
        false
    }

    fn announce(&mut self, events: u64) {
        self.announced = events;
    }

    fn finish(&mut self) -> Result<(), Unwritten> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.write_waiting().map_err(|error| {
            self.condition.fail(&error);
            Unwritten { error, events: self.waiting_events, bytes: self.waiting.len() as u64 }
        })
    }
}
