//! `vramscope export`: writes a trace as a web page that opens from disk, with the program's own page inside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use format::EXTENSION;
use trace::units::Bytes;

use super::output::Overwrite;
use super::progress::Progress;
use super::read::{is_standard_input, name_of};
use super::redaction::RedactionOptions;
use super::remote_file::RemoteFile;
use super::{refuse, show};
use crate::file_name::file_name;
use crate::offline;

/// The options of `export`.
#[derive(Args, Debug)]
pub(super) struct Export {
    /// Memory snapshot (pickle or JSON) or recording (.vramscope); plain, .gz or .zst; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Web page to write; its name ends in .html [default: the name of FILE with .html, in the current
    /// folder]
    #[arg(short, long, value_name = "OUT")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    #[command(flatten)]
    redaction: RedactionOptions,
}

impl Export {
    /// Writes the page, and tells what it says.
    pub(super) fn run(self) -> ExitCode {
        match self.export() {
            Ok(text) => show(&text),
            Err(sentence) => refuse(&format!("{}: {sentence}", name_of(&self.file))),
        }
    }

    /// Writes the page. Returns what is printed.
    fn export(&self) -> Result<String, String> {
        let out = match &self.out {
            Some(out) => out.clone(),
            None => Path::new(&stem(&self.file)).with_added_extension("html"),
        };
        if out.extension().is_none_or(|ending| ending != "html") {
            return Err(format!("the copy is a web page. End the name {} with .html.", out.display()));
        }
        if self.redaction.preview {
            return Ok(self.redaction.copy_of(&self.file)?.summary());
        }
        self.overwrite.check(&out)?;
        let template = offline::template().map_err(str::to_owned)?;
        let copy = self.redaction.copy_of(&self.file)?;
        let name = format!("{}.{EXTENSION}", stem(&self.file));
        let recording = copy.recording();
        let progress = Progress::new(format!("Writing {}", out.display()));
        self.overwrite.write(&out, |file| {
            let mut file = io::BufWriter::new(file);
            offline::write(template, &name, &recording, &mut file)?;
            io::Write::flush(&mut file)
        })?;
        drop(progress);
        let size = |path: &Path| fs::metadata(path).map(|metadata| Bytes(metadata.len()));
        let written = size(&out).unwrap_or(Bytes(0));
        // Standard input has no size.
        let read = size(&self.file).map_or_else(|_| String::new(), |read| format!(" from {read}"));
        Ok(format!(
            "{}Wrote {}: {written}{read}. It opens in a browser, without a network.\n",
            copy.brief(),
            name_of(&out)
        ))
    }
}

/// Returns the name of a trace's file without its folder and the endings that a trace may have.
fn stem(file: &Path) -> String {
    if is_standard_input(file) {
        return "trace".to_owned();
    }
    if let Some(remote) = RemoteFile::of(file) {
        return file_name(&remote.name(file), "trace");
    }
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut stem = name.as_str();
    for ending in [".gz", ".zst", ".pickle", ".pkl", ".json", ".vramscope"] {
        stem = stem.strip_suffix(ending).filter(|rest| !rest.is_empty()).unwrap_or(stem);
    }
    stem.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_loses_the_endings_of_a_trace_only() {
        for (file, want) in [
            ("a.pickle", "a"),
            ("/tmp/run.3/a.pickle.gz", "a"),
            ("a.json.zst", "a"),
            ("a.b.vramscope", "a.b"),
            ("a.txt", "a.txt"),
            (".pickle", ".pickle"),
            ("-", "trace"),
        ] {
            assert_eq!(stem(Path::new(file)), want, "{file}");
        }
    }
}
