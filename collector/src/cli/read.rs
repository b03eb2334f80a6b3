//! Reading a snapshot or a recording from a path, for the commands that explain one.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use shared::import::{Imported, Importer};
use shared::limits::ImportLimits;
use shared::units::{Bytes, counted};

/// Bytes read at once: large enough that the calls cost nothing, small enough for the cache.
const CHUNK: usize = 4 << 20;

/// Reads one file piece by piece, so that it is never in memory as a whole.
pub(super) fn read(path: &Path) -> Result<Imported, String> {
    let mut file = File::open(path).map_err(|error| sentence(&error))?;
    let mut progress = Progress::new(file.metadata().map_or(0, |metadata| metadata.len()));
    let mut importer = Importer::new(ImportLimits::default());
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(sentence(&error)),
        };
        importer.push(&chunk[..length]).map_err(|error| error.to_string())?;
        progress.show(length, importer.events());
    }
    importer.finish().map_err(|error| error.to_string())
}

/// Returns an error of the system as a sentence.
fn sentence(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "There is no such file.".to_owned(),
        io::ErrorKind::PermissionDenied => "You have no permission to read this file.".to_owned(),
        io::ErrorKind::IsADirectory => "This is a folder. Name the files in it.".to_owned(),
        _ => format!("Reading failed: {error}."),
    }
}

/// Shows on a terminal how much of a file was read, in a line that rewrites itself.
struct Progress {
    total: u64,
    read: u64,
    is_shown: bool,
}

impl Progress {
    fn new(total: u64) -> Self {
        // A file of one chunk is read at once.
        Self { total, read: 0, is_shown: total > CHUNK as u64 && io::stderr().is_terminal() }
    }

    fn show(&mut self, length: usize, events: usize) {
        self.read += length as u64;
        if self.is_shown {
            let percent = self.read.saturating_mul(100).checked_div(self.total).unwrap_or(100).min(100);
            eprint!("\r\x1b[K{percent} % of {}, {}", Bytes(self.total), counted(events as u64, "event"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}
