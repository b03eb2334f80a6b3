//! `vramscope whatif`: runs the requests of a trace under other allocator settings, or on another device.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use format::EXTENSION;
use serde::Serialize;
use session::preview;
use trace::units::{Bytes, Count, counted, counted_as};
use whatif::{Bounds, Card, Outcome, SelfCheck, Why};

use super::fit::Fit;
use super::gate::{self, FailOn, GATE_STATUS};
use super::output::{Overwrite, next_step};
use super::progress::Progress;
use super::read::{given, name_of};
use super::subject::{Source, Subject, SubjectOptions};
use super::{one_line, parallel, refuse, show_as};

/// The options of `whatif`.
#[derive(Args, Debug)]
#[command(after_help = GATE_STATUS)]
pub(super) struct WhatIf {
    #[command(flatten)]
    subject: SubjectOptions,
    /// Allocator settings to try, as in PYTORCH_CUDA_ALLOC_CONF; can be repeated
    #[arg(long, value_name = "SETTINGS")]
    conf: Vec<String>,
    /// Write the last of the runs as a recording (.vramscope), to be opened like any other
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Exit with 1 if a request of the last run failed (oom), or never
    #[arg(long, value_name = "WHAT", default_value = "never", value_parser = gate::of_a_run())]
    fail_on: FailOn,
    /// Print all measures of each run
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// The printed result.
#[derive(Serialize)]
struct Printed {
    file: String,
    device: i64,
    selfcheck: SelfCheck,
    bounds: Bounds,
    /// Bytes that were reserved before the first event.
    #[serde(skip)]
    at_start: u64,
    /// Whether only the trace tells the memory of the device.
    is_capacity_inferred: bool,
    /// The first one has the settings of the recording.
    runs: Vec<WhatIfRun>,
}

/// One run.
#[derive(Serialize)]
struct WhatIfRun {
    conf: String,
    torch: &'static str,
    /// The memory of the device; `None` if it is not limited.
    capacity: Option<u64>,
    /// What the process can have of it: less, if others hold some or a fraction limits it.
    room: Option<u64>,
    #[serde(flatten)]
    outcome: Outcome,
    smallest_capacity: u64,
    /// The smallest card of which the process can have that much; `None` if none is large enough.
    smallest_card: Option<&'static str>,
}

impl WhatIf {
    /// Prints the answer, or why there is none.
    pub(super) fn run(self) -> ExitCode {
        match self.answer() {
            Ok(printed) => {
                let text = match self.json {
                    true => serde_json::to_string_pretty(&printed).unwrap_or_default() + "\n",
                    false => text(&printed, self.verbose) + &self.written(&printed),
                };
                let code = show_as(self.json, &text);
                let has_failed = printed.runs.last().is_some_and(|run| run.outcome.fails());
                if code == ExitCode::SUCCESS { gate::code(self.fail_on >= FailOn::Oom && has_failed) } else { code }
            }
            Err(sentence) => refuse(&format!("{}: {sentence}", name_of(&self.subject.file))),
        }
    }

    /// Returns what was written besides, and what to do with it.
    fn written(&self, printed: &Printed) -> String {
        let run = self.out.as_ref().zip(printed.runs.last());
        run.map_or_else(String::new, |(out, run)| {
            format!("\nWrote {}: the run under {}.\n{}", name_of(out), named(&run.conf), next_step("open", out))
        })
    }

    fn answer(&self) -> Result<Printed, String> {
        let out = self.out.as_deref();
        if let Some(out) = out.filter(|out| out.extension().is_none_or(|ending| ending != EXTENSION)) {
            return Err(format!(
                "The run is written as a recording. End the name {} with .{EXTENSION}.",
                out.display()
            ));
        }
        if let Some(out) = out {
            self.overwrite.check(out)?;
        }
        let (subject, source) = self.subject.subject()?;
        // Runs need memory too.
        let source = out.map(|_| source);
        let confs: Vec<&String> = std::iter::once(&subject.conf).chain(&self.conf).collect();
        let runs = {
            let of = confs.len();
            let progress = Progress::new(format!("Running under {}", counted(of as u64, "setting")));
            let shown =
                |done: usize| progress.show(|| format!("Ran under {done} of {}", counted(of as u64, "setting")));
            parallel::map(&confs, |conf| run(&subject, conf), shown).into_iter().collect::<Result<_, String>>()?
        };
        if let (Some(out), Some(source), Some(conf)) = (out, source, confs.last()) {
            write_run(&subject, source, conf, (out, self.overwrite))?;
        }
        let Subject { device, requests, baseline, is_capacity_inferred, .. } = subject;
        let file = given(&self.subject.file);
        let (bounds, at_start) = (requests.bounds(), requests.reserved_at_start());
        let selfcheck = baseline.check;
        Ok(Printed { file, device, selfcheck, bounds, at_start, is_capacity_inferred, runs })
    }
}

fn run(subject: &Subject, conf: &str) -> Result<WhatIfRun, String> {
    let Subject { baseline, capacity, .. } = subject;
    let terms = subject.terms(conf)?;
    let outcome = subject.run(conf)?;
    let smallest_capacity = subject.smallest_capacity(conf)?;
    let smallest_card = Card::smallest_for(smallest_capacity).map(|card| card.name);
    let torch = baseline.profile.torch;
    let room = capacity.map(|_| terms.room());
    Ok(WhatIfRun { conf: conf.to_owned(), torch, capacity: *capacity, room, outcome, smallest_capacity, smallest_card })
}

/// Writes a run as a recording.
fn write_run(
    subject: &Subject,
    mut source: Source,
    conf: &str,
    (out, overwrite): (&Path, Overwrite),
) -> Result<(), String> {
    let _progress = Progress::new(format!("Writing {}", out.display()));
    let refused = |error| format!("The trace can't be repeated: {error}.");
    let (_, run) = subject.requests.run_trace(&subject.terms(conf)?).map_err(refused)?;
    let name = out.file_stem().unwrap_or_default().to_string_lossy();
    let of = (&mut source.snapshot, source.header.as_ref(), source.index);
    // The device is the one that the requests were read from.
    let bytes = run.record(&name, of, preview::write).unwrap_or_default();
    overwrite.write(out, |file| file.write_all(&bytes))
}

/// Returns the answer as text for people.
fn text(printed: &Printed, is_verbose: bool) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write_text(&mut out, printed, is_verbose);
    out
}

/// Writes how far the run comes out as recorded, and how far to trust what follows.
pub(super) fn write_check(out: &mut String, device: i64, check: &SelfCheck) -> fmt::Result {
    let SelfCheck { requests, equal, first_difference, lost } = check;
    if *lost > 0 {
        let lost = counted(*lost, "event");
        writeln!(out, "Missing from this trace: {lost} of the run. These numbers are of what was read.")?;
    }
    let all = counted(*requests, "request");
    writeln!(
        out,
        "Device {device}: {} of {all} replayed at their recorded address under the recorded settings.",
        Count(*equal)
    )?;
    if let Some(difference) = first_difference {
        writeln!(
            out,
            "The first difference is at event {}. {}.",
            Count(u64::from(difference.event) + 1),
            difference.why
        )?;
        writeln!(out, "Trust these numbers only as far as that.")?;
    }
    Ok(())
}

/// Returns a device as it is printed: with its memory, and with what the process can have of it if that is less.
pub(super) fn on(capacity: Option<u64>, room: Option<u64>) -> String {
    match (capacity, room) {
        (None, _) => "any device".to_owned(),
        (Some(whole), Some(room)) if room < whole => format!("{} of {}", Bytes(room), Bytes(whole)),
        (Some(whole), _) => Bytes(whole).to_string(),
    }
}

/// Returns settings as they are printed.
pub(super) fn named(conf: &str) -> String {
    if conf.is_empty() { "default settings".to_owned() } else { one_line(conf) }
}

fn write_text(out: &mut String, printed: &Printed, is_verbose: bool) -> fmt::Result {
    let Printed { device, selfcheck, bounds, runs, at_start, is_capacity_inferred, .. } = printed;
    for WhatIfRun { conf, outcome, smallest_capacity, room, .. } in runs {
        writeln!(out, "{}", Fit { conf, outcome, needs: *smallest_capacity, room: *room })?;
    }
    writeln!(out)?;
    match is_verbose {
        true => runs.iter().try_for_each(|run| write_run_in_full(out, run))?,
        false => write_table(out, runs)?,
    }
    if *is_capacity_inferred {
        writeln!(out, "{INFERRED}")?;
    }
    let least = Bytes(bounds.exact_fit);
    writeln!(out, "What was served needs at least {least}: so much was in live tensors at once.")?;
    if *at_start > 0 {
        writeln!(out, "{} was reserved before the first event. It stays as it was recorded.", Bytes(*at_start))?;
    }
    write_check(out, *device, selfcheck)
}

/// Writes the runs as a table, the recorded one first.
fn write_table(out: &mut String, runs: &[WhatIfRun]) -> fmt::Result {
    writeln!(
        out,
        "{:>10}  {:>10}  {:>12}  {:>7}  {:>5}  settings",
        "needs", "reserved", "driver calls", "retries", "fails"
    )?;
    for (index, WhatIfRun { conf, outcome, smallest_capacity, .. }) in runs.iter().enumerate() {
        let recorded = if index == 0 { " (the recorded ones)" } else { "" };
        writeln!(
            out,
            "{:>10}  {:>10}  {:>12}  {:>7}  {:>5}  {}{recorded}",
            Bytes(*smallest_capacity).to_string(),
            Bytes(outcome.peak_reserved).to_string(),
            Count(outcome.driver_calls()).to_string(),
            Count(outcome.retries).to_string(),
            if outcome.fails() { "yes" } else { "no" },
            named(conf)
        )?;
    }
    writeln!(out, "{NEEDS}")
}

/// Said where only the trace tells the memory of the device.
pub(super) const INFERRED: &str =
    "The recorded process could have no more when memory ran short. If the device has more, add --capacity or --card.";

/// What the sizes of a run mean.
pub(super) const NEEDS: &str = "needs: the least memory that serves it; reserved: what it takes where there is room";

/// Writes all measures of a run.
fn write_run_in_full(
    out: &mut String,
    WhatIfRun { conf, torch, capacity, room, outcome, smallest_capacity, smallest_card }: &WhatIfRun,
) -> fmt::Result {
    let on = on(*capacity, *room);
    writeln!(out, "{} (torch {torch}, {on})", named(conf))?;
    writeln!(out, "  peak reserved      {}", Bytes(outcome.peak_reserved))?;
    writeln!(out, "  peak allocated     {}", Bytes(outcome.peak_allocated))?;
    writeln!(out, "  most cached        {}", Bytes(outcome.most_unused))?;
    writeln!(
        out,
        "  driver calls       {} allocate, {} free ({})",
        Count(outcome.device_allocs),
        Count(outcome.device_frees),
        outcome.driver_time()
    )?;
    writeln!(out, "  retries            {}", Count(outcome.retries))?;
    if outcome.ooms > 0 {
        writeln!(out, "  out of memory      {}", counted_as(outcome.ooms, "request fails", "requests fail"))?;
    }
    let card = smallest_card.unwrap_or("no card in the list is large enough");
    writeln!(out, "  smallest capacity  {} ({card})", Bytes(*smallest_capacity))?;
    let at = Count(u64::from(outcome.stopped_at.unwrap_or_default()) + 1);
    match outcome.stopped_why {
        None => {}
        Some(Why::AtStart) => {
            writeln!(out, "  what was in use before the first event does not fit, so the run does not begin")?;
        }
        Some(Why::Failed) => writeln!(out, "  at event {at} it runs out of memory; what would follow can't be told")?,
        Some(Why::Served) => {
            let served = "it is served where the recording ran out of memory";
            writeln!(out, "  at event {at} {served}; what would follow can't be told")?;
        }
    }
    writeln!(out)
}
