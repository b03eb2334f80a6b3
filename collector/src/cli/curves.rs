//! `vramscope curves`: prints the measures of fragmentation of a file at every position.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::measures::{Measures, Measuring};
use clap::Args;
use format::import::Imported;
use replay::Replay;
use trace::units::counted;
use trace::{DeviceTrace, Snapshot};

use super::device::{choose, numbers};
use super::message::note;
use super::progress::Progress;
use super::read::{name_of, read};
use super::{print, refuse};

/// Positions that are measured before they are written: few enough to stop at once when nobody reads.
const PIECE: u32 = 1 << 12;

/// The options of `curves`.
#[derive(Args, Debug)]
pub(super) struct Curves {
    /// Memory snapshot (pickle or JSON) or recording (.vramscope); plain, .gz or .zst; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Device, by its number in the file [default: the first one with events]
    #[arg(long, value_name = "N")]
    device: Option<i64>,
    /// First position: the state after this many events
    #[arg(long, value_name = "E", default_value_t = 0)]
    from: u32,
    /// Last position, which is printed too [default: the end]
    #[arg(long, value_name = "E")]
    to: Option<u32>,
    /// Print every K-th position only
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Of each K positions, print those where a column is smallest or largest
    #[arg(long, requires = "every")]
    extremes: bool,
    /// Print comma-separated values (default)
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print a JSON array with an object for each position
    #[arg(long)]
    json: bool,
}

/// A column: its name, and its value at a position.
type Column = (&'static str, fn(&Measures) -> u64);

/// The columns of measures. Before them are the position and its time.
const COLUMNS: [Column; 11] = [
    ("requested", |now| now.requested),
    ("allocated", |now| now.allocated),
    ("active", |now| now.active),
    ("reserved", |now| now.reserved),
    ("inactive_split", |now| now.inactive_split),
    ("cached_whole", |now| now.cached_whole),
    ("rounding", Measures::rounding),
    ("largest_gap", Measures::largest_gap),
    ("largest_servable_small", Measures::largest_servable_small),
    ("largest_servable_large", Measures::largest_servable_large),
    ("gaps", |now| now.gaps as u64),
];

impl Curves {
    /// Prints the rows, or why there are none.
    pub(super) fn run(self) -> ExitCode {
        match self.open() {
            Ok((snapshot, device)) => self.print(snapshot, device),
            Err(sentence) => refuse(&format!("{}: {sentence}", name_of(&self.file))),
        }
    }

    /// Reads the file, and finds the device.
    fn open(&self) -> Result<(Snapshot, usize), String> {
        let Imported { snapshot, .. } = read(Path::new(&self.file))?;
        let device = choose(self.device, &snapshot.devices)?;
        let events = snapshot.devices.get(device).map_or(0, |trace| trace.events.len());
        if self.from as usize > events {
            let count = counted(events as u64, "event");
            return Err(format!("--from {} is behind the end: the device has {count}.", self.from));
        }
        if self.to.is_some_and(|to| to < self.from) {
            return Err("--to is before --from.".to_owned());
        }
        if self.device.is_none() && snapshot.devices.len() > 1 {
            let number = snapshot.devices.get(device).map_or(0, |trace| trace.device);
            let (name, numbers) = (name_of(&self.file), numbers(&snapshot.devices));
            note(&format!("{name}: the file has the devices {numbers}. These are the rows of device {number}."));
        }
        Ok((snapshot, device))
    }

    fn print(&self, mut snapshot: Snapshot, device: usize) -> ExitCode {
        let trace = snapshot.devices.swap_remove(device);
        let progress = Progress::new("Rebuilding the history");
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        drop((snapshot, progress));
        print(|out| {
            let mut rows = Rows { trace: &trace, is_json: self.json, has_rows: false, text: Vec::new(), out };
            rows.begin()?;
            self.write(&trace, &replay, &mut rows)?;
            rows.end()
        })
    }

    fn write(&self, trace: &DeviceTrace, replay: &Replay, rows: &mut Rows<'_>) -> io::Result<()> {
        let to = self.to.unwrap_or(u32::MAX).min(replay.positions());
        let mut measuring = Measuring::at(replay, self.from);
        let mut group = self.extremes.then(Group::default);
        let mut visit = |position: u32, now: &Measures, rows: &mut Rows<'_>| {
            let place = (position - self.from) % self.every;
            match &mut group {
                None if place == 0 => rows.push(position, now),
                None => {}
                Some(group) => {
                    group.add(position, now);
                    if place + 1 == self.every || position == to {
                        std::mem::take(group).rows().iter().for_each(|(position, now)| rows.push(*position, now));
                    }
                }
            }
        };
        visit(self.from, &measuring.now(), rows);
        while measuring.position() < to {
            let next = measuring.position().saturating_add(PIECE).min(to);
            measuring.advance(trace, replay, next, |position, now| visit(position, now, rows));
            rows.flush()?;
        }
        rows.flush()
    }
}

/// Some neighbouring positions, of which those with an extreme are kept: for each column the first with its smallest and
/// the first with its largest value.
#[derive(Default)]
struct Group {
    smallest: [Option<(u64, u32, Measures)>; COLUMNS.len()],
    largest: [Option<(u64, u32, Measures)>; COLUMNS.len()],
}

impl Group {
    fn add(&mut self, position: u32, now: &Measures) {
        for ((_, value), (smallest, largest)) in COLUMNS.iter().zip(self.smallest.iter_mut().zip(&mut self.largest)) {
            let value = value(now);
            if smallest.is_none_or(|known| value < known.0) {
                *smallest = Some((value, position, *now));
            }
            if largest.is_none_or(|known| value > known.0) {
                *largest = Some((value, position, *now));
            }
        }
    }

    /// Returns the positions with an extreme in order, each once.
    fn rows(&self) -> Vec<(u32, Measures)> {
        let all = self.smallest.iter().chain(&self.largest).flatten();
        let mut rows: Vec<(u32, Measures)> = all.map(|(_, position, now)| (*position, *now)).collect();
        rows.sort_by_key(|row| row.0);
        rows.dedup_by_key(|row| row.0);
        rows
    }
}

/// Writes rows as text.
struct Rows<'a> {
    trace: &'a DeviceTrace,
    is_json: bool,
    has_rows: bool,
    /// What has not been written yet.
    text: Vec<u8>,
    out: &'a mut dyn Write,
}

impl Rows<'_> {
    fn begin(&mut self) -> io::Result<()> {
        if self.is_json {
            return write!(self.out, "[");
        }
        let names = COLUMNS.map(|(name, _)| name).join(",");
        writeln!(self.out, "event,time_us,{names}")
    }

    fn end(&mut self) -> io::Result<()> {
        if self.is_json { writeln!(self.out, "\n]") } else { Ok(()) }
    }

    /// Adds the row of a position.
    fn push(&mut self, position: u32, now: &Measures) {
        let time_us = match position.checked_sub(1) {
            Some(event) => self.trace.events.time_us.get(event as usize).unwrap_or_default(),
            None => self.trace.start_us(),
        };
        if self.is_json {
            self.text.extend_from_slice(if self.has_rows { b",\n{\"event\":" } else { b"\n{\"event\":" });
            self.has_rows = true;
        }
        self.number(u64::from(position));
        self.name("time_us");
        if time_us < 0 {
            self.text.push(b'-');
        }
        self.number(time_us.unsigned_abs());
        for (name, value) in COLUMNS {
            self.name(name);
            self.number(value(now));
        }
        self.text.extend_from_slice(if self.is_json { b"}" } else { b"\n" });
    }

    /// Adds what is between two values.
    fn name(&mut self, name: &str) {
        self.text.push(b',');
        if self.is_json {
            self.text.push(b'"');
            self.text.extend_from_slice(name.as_bytes());
            self.text.extend_from_slice(b"\":");
        }
    }

    /// Adds a number. Millions of rows have a dozen each, so this does without formatting.
    fn number(&mut self, mut number: u64) {
        let mut digits = [b'0'; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.text.extend_from_slice(&digits[first..]);
    }

    /// Writes what was added.
    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}
