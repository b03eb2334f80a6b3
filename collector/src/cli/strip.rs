//! `vramscope strip`: writes a copy of a trace that says less about who recorded it and where.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use format::EXTENSION;
use trace::units::Bytes;

use super::output::{Overwrite, next_step};
use super::read::name_of;
use super::redaction::RedactionOptions;
use super::{refuse, show};

/// The options of `strip`.
#[derive(Args, Debug)]
pub(super) struct Strip {
    /// Memory snapshot (pickle or JSON) or recording (.vramscope); plain, .gz or .zst; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Recording to write; its name ends in .vramscope
    #[arg(short, long, value_name = "OUT", required_unless_present = "preview")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    #[command(flatten)]
    redaction: RedactionOptions,
}

impl Strip {
    /// Writes the copy, or tells what it would say.
    pub(super) fn run(self) -> ExitCode {
        match self.copy() {
            Ok(text) => show(&text),
            Err(sentence) => refuse(&format!("{}: {sentence}", name_of(&self.file))),
        }
    }

    /// Makes the copy, and writes it if it is wanted. Returns what is printed.
    fn copy(&self) -> Result<String, String> {
        if let Some(out) = &self.out
            && out.extension().is_none_or(|ending| ending != EXTENSION)
        {
            return Err(format!("the copy is a recording. End the name {} with .{EXTENSION}.", out.display()));
        }
        if let Some(out) = &self.out {
            self.overwrite.check(out)?;
        }
        let copy = self.redaction.copy_of(&self.file)?;
        if self.redaction.preview {
            return Ok(copy.summary());
        }
        let mut text = copy.brief();
        if let Some(out) = &self.out {
            let bytes = copy.recording();
            self.overwrite.write(out, |file| file.write_all(&bytes))?;
            // Standard input has no size.
            let read =
                fs::metadata(&self.file).map_or_else(|_| String::new(), |file| format!(" from {}", Bytes(file.len())));
            text += &format!("Wrote {}: {}{read}.\n", name_of(out), Bytes(bytes.len() as u64));
            text += &next_step("doctor", out);
        }
        Ok(text)
    }
}
