//! Reading a file, standard input for `-`, or [what is on a server](RemoteFile): plain, `.gz` or `.zst`, told by the first bytes and
//! not by the name.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use format::import::{Imported, Importer, unpacked};
use trace::limits::ImportLimits;
use trace::units::{Bytes, counted};

use super::message::one_line;
use super::progress::Progress;
use super::remote_file::RemoteFile;

/// Bytes read at once: large enough that the calls cost nothing, small enough for the cache.
const CHUNK: usize = 4 << 20;
/// The name of standard input, in place of a file's.
const STANDARD_INPUT: &str = "-";

/// Whether standard input was read: it can be read only once.
static IS_INPUT_READ: AtomicBool = AtomicBool::new(false);

/// Reads one snapshot or recording piece by piece, so that it is never in memory as a whole.
pub(super) fn read(path: &Path) -> Result<Imported, String> {
    read_from(path, open(path)?)
}

/// Reads a snapshot or recording from `input`, which [`open`] returned for `path`.
pub(super) fn read_from(path: &Path, mut input: impl Read) -> Result<Imported, String> {
    let shown = short_name_of(path);
    let total = path.metadata().map_or(0, |metadata| metadata.len());
    let progress = Progress::new(format!("Reading {shown}"));
    let mut importer = Importer::new(ImportLimits::default());
    let mut chunk = vec![0; CHUNK];
    let mut read = 0u64;
    loop {
        let length = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(sentence(&error)),
        };
        importer.push(chunk.get(..length).unwrap_or_default()).map_err(|error| error.to_string())?;
        read += length as u64;
        progress.show(|| {
            let events = counted(importer.events() as u64, "event");
            match read.min(total).saturating_mul(100).checked_div(total) {
                Some(percent) => format!("Reading {shown}: {percent} % of {}, {events}", Bytes(total)),
                None => format!("Reading {shown}: {}, {events}", Bytes(read)),
            }
        });
    }
    progress.show(|| format!("Reading {shown}: its last parts"));
    let mut imported = importer.finish().map_err(|error| error.to_string())?;
    // Commands tell the same as the page, whose sessions do this, too.
    imported.derive_end();
    Ok(imported)
}

/// Reads a whole file of at most `most` bytes when it is decompressed. Of a longer one that is not compressed, a byte more than
/// that is returned, so that the caller can tell what it is that should be shorter.
pub(super) fn bytes(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    open(path)?.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| sentence(&error))?;
    unpacked(bytes, most).map_err(|error| error.to_string())
}

/// Opens a file, standard input, or what is on a server.
pub(super) fn open(path: &Path) -> Result<Box<dyn Read>, String> {
    if is_standard_input(path) {
        return match IS_INPUT_READ.swap(true, Ordering::Relaxed) {
            true => Err("Standard input can be read only once. Name - in one place.".to_owned()),
            false => Ok(Box::new(io::stdin().lock())),
        };
    }
    if let Some(remote) = RemoteFile::of(path) {
        return Ok(Box::new(Cursor::new(remote.fetch(path)?)));
    }
    let file = File::open(path).map_err(|error| sentence(&error))?;
    // A folder can be opened here, and read nowhere.
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(sentence(&io::ErrorKind::IsADirectory.into()));
    }
    Ok(Box::new(file))
}

/// Whether a path stands for standard input.
pub(super) fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
}

/// Returns the name of a file for people.
pub(super) fn name_of(path: &Path) -> String {
    match RemoteFile::of(path) {
        Some(remote) => remote.name(path),
        None if is_standard_input(path) => "Standard input".to_owned(),
        None => one_line(&path.to_string_lossy()),
    }
}

/// Returns the path of a file as it was given; of what is on a server its name, since a link has its token in it.
pub(super) fn given(path: &Path) -> String {
    RemoteFile::of(path).map_or_else(|| path.display().to_string(), |remote| remote.name(path))
}

/// Returns the name of a file without its folder, for a line on a terminal.
pub(super) fn short_name_of(path: &Path) -> String {
    if is_standard_input(path) {
        return name_of(path).to_lowercase();
    }
    let name = path.file_name().filter(|_| RemoteFile::of(path).is_none());
    name.map_or_else(|| name_of(path), |name| one_line(&name.to_string_lossy()))
}

/// Returns an error of the system as sentences: what, and what next.
pub(super) fn sentence(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "There is no such file. Check the path.".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "You have no permission to read this file. Ask its owner, or copy it.".to_owned()
        }
        io::ErrorKind::IsADirectory => "This is a folder. Name the files in it.".to_owned(),
        _ => format!("Reading failed: {error}. Copy the file to this machine, and try again."),
    }
}
