//! The options that tell what a copy of a trace leaves out, for the commands that write or send one.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use clap::{Args, ValueEnum};
use format::import::Imported;
use format::redaction::{Contents, Part, Paths, Redaction, header_of, note_faults, redact};
use format::{Fault, Header};
use session::preview;
use trace::Snapshot;
use trace::units::counted;

use super::one_line;
use super::progress::Progress;
use super::read::{is_standard_input, read, short_name_of};

/// The most names of a kind that are printed.
const EXAMPLES: usize = 100;

/// What a copy of a trace leaves out.
#[derive(Args, Debug)]
pub(super) struct RedactionOptions {
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
    /// List the names that the copy would have and those that it would not, and write or send nothing
    #[arg(long)]
    pub(super) preview: bool,
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

/// A copy of a trace that says less, and what both of them say.
pub(super) struct RedactedCopy {
    header: Header,
    snapshot: Snapshot,
    before: Contents,
    after: Contents,
}

impl RedactionOptions {
    /// Reads a snapshot or a recording, and makes the copy.
    pub(super) fn copy_of(&self, file: &Path) -> Result<RedactedCopy, String> {
        let mut imported = read(file)?;
        let name = || {
            file.file_stem()
                .filter(|_| !is_standard_input(file))
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        let mut header = imported.header.take().unwrap_or_else(|| header_of(&name(), &imported.snapshot));
        note_faults(&mut header, &imported.findings);
        let redaction = self.redaction(&imported)?;
        let _progress = Progress::new(format!("Making a copy of {}", short_name_of(file)));
        let before = Contents::of(&header, &imported.snapshot);
        let (header, snapshot) = redact(&header, &mut imported.snapshot, &redaction);
        let after = Contents::of(&header, &snapshot);
        Ok(RedactedCopy { header, snapshot, before, after })
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

impl RedactedCopy {
    /// Returns the copy as a recording.
    pub(super) fn recording(&self) -> Vec<u8> {
        let _progress = Progress::new("Writing the copy");
        format::write(&self.header, &self.snapshot)
    }

    /// Returns the copy as a recording that is shown before all of it was read.
    pub(super) fn shareable(&self) -> Vec<u8> {
        let _progress = Progress::new("Writing the copy");
        preview::write(&self.header, &self.snapshot)
    }

    /// Returns the name of the trace.
    pub(super) fn name(&self) -> &str {
        &self.header.name
    }

    /// Returns in a line which kinds of names are left out, and which are still there.
    pub(super) fn brief(&self) -> String {
        let Self { before, after, .. } = self;
        let kinds = |count: &dyn Fn(&BTreeSet<String>, &BTreeSet<String>) -> usize| {
            let lists = before.lists().into_iter().zip(after.lists());
            let counts = lists.map(|((name, was), (_, is))| (name.to_lowercase(), count(was, is)));
            let some: Vec<String> =
                counts.filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name} ({count})")).collect();
            if some.is_empty() { "none".to_owned() } else { some.join(", ") }
        };
        let (gone, left) = (kinds(&|was, is| was.difference(is).count()), kinds(&|_, is| is.len()));
        let events = counted(after.events, "event");
        self.with_notes(format!("{events}. Names left out: {gone}; names kept: {left}. To list them: --preview\n"))
    }

    /// Returns what the trace said, and what the copy says.
    pub(super) fn summary(&self) -> String {
        let Self { before, after, .. } = self;
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
        self.with_notes(text)
    }

    /// Appends what is wrong with the copy, and what it can't have.
    fn with_notes(&self, mut text: String) -> String {
        for Fault { message, .. } in &self.header.faults {
            text += &format!("! {}\n", one_line(message));
        }
        if self.before.host_events > 0 {
            text += "Events of pinned host memory are left out: a recording has none.\n";
        }
        text
    }
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
