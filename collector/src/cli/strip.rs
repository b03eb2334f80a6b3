//! `vramscope strip`: writes a copy of a trace that says less about who recorded it and where.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use shared::format::{self, EXTENSION};
use shared::import::Imported;
use shared::redaction::{Contents, Part, Paths, Redaction, header_of, redact};
use shared::units::{Bytes, counted};

use super::read::read;
use super::{one_line, print, refuse};

/// Examples of names that are printed.
const EXAMPLES: usize = 5;

/// The options of `strip`.
#[derive(Args, Debug)]
pub(super) struct Strip {
    /// Memory snapshot (pickle or JSON) or recording (.vramscope); plain, .gz or .zst
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Recording to write; its name ends in .vramscope
    #[arg(short, long, value_name = "OUT", required_unless_present = "preview")]
    out: Option<PathBuf>,
    /// Tell what the copy would say, and write nothing
    #[arg(long, conflicts_with = "out")]
    preview: bool,
    /// What becomes of paths
    #[arg(long, value_enum, default_value_t = PathsChoice::NoHomes)]
    paths: PathsChoice,
    /// Keep the names of the host and of the job
    #[arg(long)]
    keep_places: bool,
    /// Keep the texts that the job attached to its allocations
    #[arg(long)]
    keep_metadata: bool,
    /// Leave out named spans and instants
    #[arg(long)]
    no_annotations: bool,
    /// Device to keep, by its number in the file; can be repeated [default: all]
    #[arg(long, value_name = "N")]
    device: Vec<i64>,
    /// Events to keep, of one device: from the state after A events to the state after B events
    #[arg(long, value_name = "A:B", value_parser = window)]
    window: Option<Range<u32>>,
}

/// What becomes of paths.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PathsChoice {
    /// Home folders become ~, and names of users become "user"
    NoHomes,
    /// Only names of files stay
    Files,
    /// They stay as they are
    Whole,
}

/// Reads a window.
fn window(text: &str) -> Result<Range<u32>, String> {
    let (from, to) = text.split_once(':').unwrap_or_default();
    match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) if from < to => Ok(from..to),
        _ => Err("write two numbers of events, the smaller one first, such as 1000:2500".to_owned()),
    }
}

impl Strip {
    /// Writes the copy, or tells what it would say.
    pub(super) fn run(self) -> ExitCode {
        match self.copy() {
            Ok(text) => print(|out| out.write_all(text.as_bytes())),
            Err(sentence) => refuse(&format!("{}: {sentence}", self.file.display())),
        }
    }

    /// Makes the copy, and writes it if it is wanted. Returns what is printed.
    fn copy(&self) -> Result<String, String> {
        if let Some(out) = &self.out
            && out.extension().is_none_or(|ending| ending != EXTENSION)
        {
            return Err(format!("the copy is a recording. End the name {} with .{EXTENSION}.", out.display()));
        }
        let mut imported = read(&self.file)?;
        let header = imported.header.take().unwrap_or_else(|| {
            let name = self.file.file_stem().map(|name| name.to_string_lossy().into_owned());
            header_of(&name.unwrap_or_default(), &imported.snapshot)
        });
        let redaction = self.redaction(&imported)?;
        let before = Contents::of(&header, &imported.snapshot);
        let (copied_header, copied) = redact(&header, &mut imported.snapshot, &redaction);
        let after = Contents::of(&copied_header, &copied);
        let mut text = summary(&before, &after);
        if let Some(out) = &self.out {
            let bytes = format::write(&copied_header, &copied);
            write(out, &bytes).map_err(|error| format!("the copy {} can't be written: {error}.", out.display()))?;
            let size = fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
            text += &format!("Wrote {}: {} from {}.\n", out.display(), Bytes(bytes.len() as u64), Bytes(size));
        }
        Ok(text)
    }

    fn redaction(&self, imported: &Imported) -> Result<Redaction, String> {
        let known: Vec<i64> = imported.snapshot.devices.iter().map(|trace| trace.device).collect();
        if let Some(unknown) = self.device.iter().find(|number| !known.contains(number)) {
            return Err(format!("there is no device {unknown}. The file has: {}.", numbers(&known)));
        }
        let part = match (&self.window, &self.device[..], &known[..]) {
            (Some(positions), [device], _) | (Some(positions), [], [device]) => {
                Part::Window { device: *device, positions: positions.clone() }
            }
            (Some(_), ..) => {
                return Err(format!("a window is of one device. Name it with --device: {}.", numbers(&known)));
            }
            (None, [], _) => Part::Everything,
            (None, devices, _) => Part::Devices(devices.to_vec()),
        };
        let paths = match self.paths {
            PathsChoice::NoHomes => Paths::WithoutHomes,
            PathsChoice::Files => Paths::FileNames,
            PathsChoice::Whole => Paths::Whole,
        };
        Ok(Redaction {
            paths,
            has_places: self.keep_places,
            has_metadata: self.keep_metadata,
            is_without_annotations: self.no_annotations,
            part,
        })
    }
}

/// Writes a file under another name first, so that an incomplete one is never found.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension(format!("{EXTENSION}.part"));
    let written = fs::File::create(&part).and_then(|mut file| file.write_all(bytes));
    written.and_then(|()| fs::rename(&part, path)).inspect_err(|_| {
        // Fails only if it was not created.
        let _ = fs::remove_file(&part);
    })
}

/// Returns what the trace said, and what the copy says.
fn summary(before: &Contents, after: &Contents) -> String {
    let mut text = format!(
        "{} of {}, from {}.\n",
        counted(after.events, "event"),
        counted(after.devices.len() as u64, "device"),
        counted(before.events, "event")
    );
    for ((name, was), (_, is)) in before.lists().into_iter().zip(after.lists()) {
        let [was, is] = [was, is].map(shown);
        text += &match was == is {
            true => format!("{name}: {is}\n"),
            false => format!("{name}: {is} (was: {was})\n"),
        };
    }
    if before.host_events > 0 {
        text += "Events of pinned host memory are left out: a recording has none.\n";
    }
    text
}

/// Shows the first items of a list, and how many there are.
fn shown(list: &BTreeSet<String>) -> String {
    let some: Vec<String> = list.iter().take(EXAMPLES).map(|item| one_line(item)).collect();
    match list.len() {
        0 => "none".to_owned(),
        count if count > EXAMPLES => format!("{}, and {} more", some.join(", "), count - EXAMPLES),
        _ => some.join(", "),
    }
}

fn numbers(devices: &[i64]) -> String {
    devices.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}
