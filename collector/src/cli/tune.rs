//! `vramscope tune`: looks for the allocator settings that serve a run best.

use std::fmt::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use query::setting;
use serde::Serialize;
use trace::units::{Bytes, Count, counted};
use whatif::tune::{Candidate, Goal, Group, Search, Tried, Tuning, tuning};
use whatif::{Bounds, SelfCheck};

use super::fit::Fit;
use super::parallel;
use super::progress::Progress;
use super::read::{given, name_of};
use super::subject::{Subject, SubjectOptions};
use super::whatif::{INFERRED, NEEDS, named, on, write_check};
use super::{refuse, show_as};

/// What leads advice that was checked on the trace.
const CHECKED: &str = "help (checked on this trace):";
/// The rows of the table that are printed.
const ROWS: usize = 10;

/// The options of `tune`.
#[derive(Args, Debug)]
pub(super) struct Tune {
    #[command(flatten)]
    subject: SubjectOptions,
    /// What to look for
    #[arg(long, value_enum, default_value = "reserved")]
    goal: GoalName,
    /// Print all results, those that fail too
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// A goal as it is typed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum GoalName {
    /// The least reserved memory at the peak
    Reserved,
    /// The fewest calls of the driver
    Calls,
    /// No request that fails, and the fewest retries
    Fit,
}

impl From<GoalName> for Goal {
    fn from(name: GoalName) -> Self {
        match name {
            GoalName::Reserved => Self::Reserved,
            GoalName::Calls => Self::Calls,
            GoalName::Fit => Self::Fit,
        }
    }
}

/// The printed result.
#[derive(Debug, Serialize)]
pub(super) struct Printed {
    /// The file, or the name of a workload.
    file: String,
    device: i64,
    torch: &'static str,
    /// The memory of the device; `None` if it is not limited.
    capacity: Option<u64>,
    /// What the process can have of it: less, if others hold some or a fraction limits it.
    room: Option<u64>,
    /// Whether only the trace tells the memory of the device.
    is_capacity_inferred: bool,
    selfcheck: SelfCheck,
    bounds: Bounds,
    /// The smallest device that serves the run under the recommended settings, or else under the recorded ones.
    smallest_capacity: u64,
    /// The recorded settings.
    #[serde(skip)]
    recorded: String,
    #[serde(flatten)]
    tuning: Tuning,
}

impl Tune {
    /// Prints the answer, or why there is none.
    pub(super) fn run(self) -> ExitCode {
        match self.answer() {
            Ok(printed) => show_as(self.json, &printed.text(self.json, self.verbose)),
            Err(sentence) => refuse(&format!("{}: {sentence}", name_of(&self.subject.file))),
        }
    }

    fn answer(&self) -> Result<Printed, String> {
        // The file itself is not needed any more.
        let subject = self.subject.subject()?.0;
        Printed::new(given(&self.subject.file), subject, self.goal)
    }
}

impl Printed {
    /// Searches for the settings of a run.
    pub(super) fn new(file: String, subject: Subject, goal: GoalName) -> Result<Self, String> {
        let tuning = tune(&subject, goal.into())?;
        let bounds = subject.requests.bounds();
        let room = subject.room()?;
        let smallest_capacity = subject.smallest_capacity(tuning.advice.conf.as_deref().unwrap_or(&subject.conf))?;
        let Subject { device, baseline, capacity, is_capacity_inferred, conf: recorded, .. } = subject;
        let (torch, selfcheck) = (baseline.profile.torch, baseline.check);
        Ok(Self {
            file,
            device,
            torch,
            capacity,
            room,
            is_capacity_inferred,
            selfcheck,
            bounds,
            smallest_capacity,
            recorded,
            tuning,
        })
    }

    /// Returns the recommended settings, if any help.
    pub(super) fn conf(&self) -> Option<&str> {
        self.tuning.advice.conf.as_deref()
    }

    /// Returns the recommendation as text for people.
    pub(super) fn advice(&self) -> String {
        let mut out = String::new();
        // Writing to a string can't fail.
        let _ = write_advice(&mut out, self);
        out
    }

    /// Returns the answer as JSON, or as text for people.
    pub(super) fn text(&self, is_json: bool, is_verbose: bool) -> String {
        match is_json {
            true => serde_json::to_string_pretty(self).unwrap_or_default() + "\n",
            false => text(self, is_verbose),
        }
    }
}

/// Searches on all cores.
fn tune(subject: &Subject, goal: Goal) -> Result<Tuning, String> {
    let run = |conf: &str| subject.run(conf);
    let recorded = run(&subject.conf)?;
    let mut search = Search::new(subject.baseline.profile, goal, subject.fraction.is_some());
    let mut tried: Vec<Tried> = Vec::new();
    let progress = Progress::new("Trying settings");
    loop {
        let round = search.round(&tried);
        if round.is_empty() {
            break;
        }
        let (before, ahead) = (tried.len(), tried.len() + round.len());
        let show =
            |done: usize| progress.show(|| format!("Tried {} of {} settings", Count((before + done) as u64), ahead));
        let try_one = |candidate: &Candidate| run(&candidate.conf(&subject.conf));
        let outcomes = parallel::map(&round, try_one, show);
        for (candidate, outcome) in round.into_iter().zip(outcomes) {
            tried.push(Tried { candidate, outcome: outcome? });
        }
    }
    drop(progress);
    let bounds = subject.requests.bounds();
    Ok(tuning(goal, &tried, (&subject.conf, &recorded), (&bounds, subject.terms(&subject.conf)?.room())))
}

fn text(printed: &Printed, is_verbose: bool) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write_text(&mut out, printed, is_verbose);
    out
}

fn write_advice(out: &mut String, printed: &Printed) -> fmt::Result {
    let advice = &printed.tuning.advice;
    match &advice.conf {
        Some(conf) => {
            writeln!(out, "{CHECKED} {}", advice.text)?;
            match conf.is_empty() {
                true => writeln!(out, "  Leave PYTORCH_CUDA_ALLOC_CONF unset.")?,
                false => writeln!(out, "  {}", setting::line(conf))?,
            }
        }
        None => writeln!(out, "{}", advice.text)?,
    }
    match advice.cost.is_empty() {
        true => Ok(()),
        false => writeln!(out, "  {}", advice.cost),
    }
}

fn write_text(out: &mut String, printed: &Printed, is_verbose: bool) -> fmt::Result {
    let Printed { device, torch, capacity, room, selfcheck, bounds, smallest_capacity, recorded, tuning, .. } = printed;
    let advice = &tuning.advice;
    let is_advised = |group: &Group| advice.conf.as_ref().is_some_and(|conf| group.confs.contains(conf));
    let best = tuning.groups.iter().find(|group| is_advised(group));
    if let Some(group) = best.or(tuning.groups.iter().find(|group| group.is_recorded)) {
        let conf = advice.conf.as_deref().unwrap_or(recorded);
        writeln!(out, "{}", Fit { conf, outcome: &group.outcome, needs: *smallest_capacity, room: *room })?;
    }
    write_advice(out, printed)?;
    writeln!(out)?;
    let is_shown = |group: &&Group| is_verbose || !group.outcome.fails() || group.is_recorded;
    let shown: Vec<&Group> = tuning.groups.iter().filter(is_shown).collect();
    let (first, rest) = shown.split_at(if is_verbose { shown.len() } else { ROWS.min(shown.len()) });
    let is_marked = |group: &&&Group| group.is_recorded || is_advised(group);
    writeln!(out, "  {:>10}  {:>12}  {:>7}  {:>5}  settings", "reserved", "driver calls", "retries", "fails")?;
    for group in first.iter().chain(rest.iter().filter(is_marked)) {
        // Of settings with the same result, the recommended ones stand for the others.
        let advised = advice.conf.as_deref().filter(|_| is_advised(group));
        let first = advised.or(group.confs.first().map(String::as_str)).unwrap_or_default();
        let others = group.confs.len().saturating_sub(1);
        let more = if others > 0 { format!(" (and {})", counted(others as u64, "other")) } else { String::new() };
        let mark = match (is_advised(group), group.is_recorded, group.is_on_front) {
            (true, ..) => ">",
            (_, true, _) => "=",
            (_, _, true) => "*",
            _ => " ",
        };
        let outcome = &group.outcome;
        writeln!(
            out,
            "{mark} {:>10}  {:>12}  {:>7}  {:>5}  {}{more}",
            Bytes(outcome.peak_reserved).to_string(),
            Count(outcome.driver_calls()).to_string(),
            Count(outcome.retries).to_string(),
            if outcome.fails() { "yes" } else { "no" },
            named(first),
        )?;
    }
    if first.iter().chain(rest).any(|group| !group.outcome.fails()) {
        writeln!(out, "> recommended   = as recorded   * no other is better in both, memory and driver calls")?;
    }
    let hidden = tuning.groups.len() - shown.len();
    if hidden > 0 {
        writeln!(out, "{} that fail: add -v", counted(hidden as u64, "result"))?;
    }
    let on = match capacity {
        None => on(None, None),
        Some(_) => format!("a device of {}", on(*capacity, *room)),
    };
    let tried = counted(tuning.tried.into(), "setting");
    writeln!(out, "{NEEDS}\n\nTried {tried} on {on} as torch {torch}.")?;
    if printed.is_capacity_inferred {
        writeln!(out, "{INFERRED}")?;
    }
    writeln!(out, "What was served needs at least {}: so much was in live tensors at once.", Bytes(bounds.exact_fit))?;
    write_check(out, *device, selfcheck)
}
