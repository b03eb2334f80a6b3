//! The file of `--out`: no existing one is replaced unless that is wanted, and none is found half written.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use recorder::disk;
use trace::text::quoted;

/// Whether an existing file is replaced.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct Overwrite {
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

impl Overwrite {
    /// Returns the choice of a file that is the program's own to replace.
    pub(super) const fn always() -> Self {
        Self { force: true }
    }

    /// Refuses a file that can't be written, before anything is read or run: it exists, or its folder doesn't.
    pub(super) fn check(self, out: &Path) -> Result<(), String> {
        let name = out.display();
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let folder = folder.display();
            return Err(format!(
                "{name} can't be written: there is no folder {folder}. Make it, or name another file."
            ));
        }
        match fs::symlink_metadata(out) {
            Ok(metadata) if metadata.is_dir() => {
                Err(format!("{name} is a folder. Name a file in it with --out {}.", out.join("FILE").display()))
            }
            Ok(_) if !self.force => {
                Err(format!("{name} exists already. Replace it with --force, or name another file with --out."))
            }
            _ => Ok(()),
        }
    }

    /// Writes a file under another name first, so that an incomplete one is never found.
    pub(super) fn write(self, out: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), String> {
        self.check(out)?;
        let failed = |error| cannot_be_written(out, &error);
        let part = part_of(out);
        let written = create(&part).and_then(|mut file| {
            write(&mut file)?;
            // Some file systems notice only now that a disk is full.
            file.sync_all()
        });
        let written = written.map_err(failed);
        // What took long to make is not lost to a file that somebody made meanwhile, and neither is that file.
        let renamed = written.and_then(|()| self.check(out)).and_then(|()| fs::rename(&part, out).map_err(failed));
        renamed.inspect_err(|_| {
            // Fails only if it was not created.
            let _ = fs::remove_file(&part);
        })
    }
}

/// Returns the line that says what to do with a file that was written, to be copied.
pub(super) fn next_step(command: &str, file: &Path) -> String {
    format!("→ vramscope {command} {}\n", quoted(&file.to_string_lossy()))
}

/// Returns the name of a file while it is written.
pub(super) fn part_of(out: &Path) -> PathBuf {
    let mut part = out.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

/// Creates a file, or empties it.
pub(super) fn create(path: &Path) -> io::Result<File> {
    File::create(path).map_err(|error| io::Error::new(error.kind(), disk::why_not_created(&error)))
}

/// Says why a file can't be written, and what to do next.
pub(super) fn cannot_be_written(out: &Path, error: &io::Error) -> String {
    let next = match error.kind() {
        io::ErrorKind::PermissionDenied => "Name a file in a folder of yours with --out.",
        _ if disk::is_full(error) => "Make room, or name another file with --out.",
        _ => "Name another file with --out.",
    };
    format!("{} can't be written: {}. {next}", out.display(), disk::why(error))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn an_existing_file_is_kept_unless_it_is_to_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("a.json");
        let (keep, force) = (Overwrite { force: false }, Overwrite { force: true });
        let text = || fs::read_to_string(&out).unwrap();
        keep.write(&out, |file| file.write_all(b"one")).unwrap();
        let error = keep.write(&out, |file| file.write_all(b"two")).unwrap_err();
        assert!(error.contains("a.json exists already. Replace it with --force") && text() == "one", "{error}");
        force.write(&out, |file| file.write_all(b"three")).unwrap();
        assert_eq!(text(), "three");
        // One that appeared while the other was being made.
        let other = folder.path().join("b.json");
        let late = keep.write(&other, |file| fs::write(&other, "theirs").and_then(|()| file.write_all(b"ours")));
        assert!(late.is_err() && fs::read_to_string(&other).unwrap() == "theirs");
        let error = force.write(&out, |_| Err(io::Error::other("no"))).unwrap_err();
        assert!(error.ends_with("a.json can't be written: no. Name another file with --out."), "{error}");
        assert_eq!(text(), "three");
        // No part stays behind.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        let missing = keep.check(&folder.path().join("no/a.json")).unwrap_err();
        assert!(missing.contains("there is no folder"), "{missing}");
        assert!(force.check(folder.path()).unwrap_err().contains("is a folder."));
    }
}
