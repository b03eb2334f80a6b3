//! `vramscope diff`: what changed from one run to another, and whether that is too much.

pub(super) mod baseline;
mod json;
pub(super) mod loaded;
pub(super) mod markdown;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use compare::gate::{Checked, Rule};
use compare::{Options, compare, profile};
use query::run_comparison::{ChangedPart, Comparability, RunComparison};
use query::run_profile::{MomentChoice, RunProfile};

use self::baseline::{moment_like, read_baseline};
use self::loaded::{Loaded, common_moments, profiles};
use super::message::TRIPPED;
use super::progress::Progress;
use super::{print_json, refuse, show};

/// The exit codes.
const STATUS: &str = "\
Exit status:
  0  Compared, and no rule of --fail-if broken
  1  A rule of --fail-if is broken
  2  The two can't be compared, or can't be read";

/// The options of `diff`.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub(super) struct Diff {
    /// The base: a memory snapshot (pickle or JSON) or recording (.vramscope), plain, .gz or .zst, or a baseline
    #[arg(value_name = "A")]
    before: PathBuf,
    /// What is compared with it [default: A itself, at two moments]
    #[arg(value_name = "B")]
    after: Option<PathBuf>,
    /// Moment of both, or if it is given twice, that of A and that of B: peak, end, step:N (its peak), step-end:N, event:N, time:SECONDS,
    /// mark:NAME or phase:NAME [default: the peak of the last step that both have whole, or else of the run; the end where there is no
    /// history; without B, the peaks of the second and of the last whole step]
    #[arg(long, value_name = "MOMENT")]
    at: Vec<String>,
    /// Device, by its number in the files [default: the first one with events]
    #[arg(long, value_name = "N")]
    device: Option<i64>,
    /// Beginning of paths in A, and what it is in B; can be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = mapping)]
    map: Vec<(String, String)>,
    /// Exit with 1 if more was added: peak+2%, reserved+200MiB, line+100MiB, fragmentation+3%; can be repeated
    #[arg(long, value_name = "RULE", value_parser = Rule::parse)]
    fail_if: Vec<Rule>,
    /// Compare what can't be compared, too
    #[arg(long)]
    force: bool,
    /// Print all lines
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Print Markdown, such as for a comment on a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// What was found.
struct Found {
    compared: RunComparison,
    gate: Vec<Checked>,
    is_forced: bool,
}

impl Diff {
    /// Prints what changed. The exit code is 1 if a rule is broken, and 2 if the two can't be compared.
    pub(super) fn run(self) -> ExitCode {
        let found = match self.found() {
            Ok(found) => found,
            Err(sentence) => return refuse(&sentence),
        };
        let printed = if self.json {
            print_json(&json::document(&found))
        } else if self.markdown {
            show(&markdown::comment(&found))
        } else {
            show(&text::text(&found, self.verbose))
        };
        let is_tripped = found.gate.iter().any(|checked| checked.is_tripped);
        match printed == ExitCode::SUCCESS && is_tripped {
            true => ExitCode::from(TRIPPED),
            false => printed,
        }
    }

    fn found(&self) -> Result<Found, String> {
        let at = self.moments()?;
        let kept = read_baseline(&self.before)?;
        let (ends, peers) = match (kept, &self.after) {
            (Some(_), None) => return Err("A baseline is compared with a run. Name it, too.".to_owned()),
            (Some(kept), Some(after)) => {
                if let Some(at) = self.at.first() {
                    return Err(format!("A baseline is of one moment. Leave out --at {at}."));
                }
                let (base, peers) = kept.divided()?;
                let after = Loaded::read(after, self.device)?;
                let b = after.run();
                let choice = moment_like(Some(&base.moment), &b);
                ([base, profile(&b, &choice)?], peers)
            }
            (None, Some(after)) => {
                let mut runs = Loaded::both([&self.before, after], self.device)?;
                let _progress = Progress::new("Comparing");
                let at = at.unwrap_or_else(|| common_moments(&runs));
                (profiles(&mut runs, &at)?, Vec::new())
            }
            (None, None) => (self.with_itself(at)?, Vec::new()),
        };
        let [base, other] = &ends;
        let compared = compare(base, other, &Options { map: self.map.clone(), peers });
        let is_refused = compared.comparability == Comparability::No;
        if let Some(worst) = compared.differences.first().filter(|_| is_refused && !self.force) {
            let [one, other] = &worst.values;
            return Err(format!(
                "These can't be compared: {} ({one} in A, {other} in B). Record both with a history, or add --force.",
                worst.consequence
            ));
        }
        let gate = self.fail_if.iter().map(|rule| rule.check(&compared)).collect();
        Ok(Found { compared, gate, is_forced: is_refused })
    }

    /// Returns the moments of A and of B, if they are named.
    fn moments(&self) -> Result<Option<[MomentChoice; 2]>, String> {
        Ok(match self.at.as_slice() {
            [] => None,
            [one] if self.after.is_none() => {
                moment(one)?;
                return Err(format!(
                    "One run is compared at two moments. Add another, such as --at {one} --at end, or a run."
                ));
            }
            [one] => Some([moment(one)?, moment(one)?]),
            [one, other] => Some([moment(one)?, moment(other)?]),
            _ => return Err("A comparison has two moments. Give --at once for both, or twice.".to_owned()),
        })
    }

    /// Profiles A at two moments.
    fn with_itself(&self, at: Option<[MomentChoice; 2]>) -> Result<[RunProfile; 2], String> {
        let loaded = Loaded::read(&self.before, self.device)?;
        let _progress = Progress::new("Comparing");
        let run = loaded.run();
        let [one, other] = match at {
            Some(at) => at,
            None => run.whole_steps().early_and_last().map(|steps| steps.map(MomentChoice::Step)).ok_or_else(|| {
                format!(
                    "{} has no two steps to compare. Name another run, or two moments: --at peak --at end.",
                    run.name
                )
            })?,
        };
        Ok([profile(&run, &one)?, profile(&run, &other)?])
    }
}

/// Reads a moment.
pub(super) fn moment(text: &str) -> Result<MomentChoice, String> {
    let number = |number: &str| number.trim().parse::<u64>().ok();
    match text.split_once(':') {
        None if text == "peak" => Some(MomentChoice::Peak),
        None if text == "end" => Some(MomentChoice::End),
        Some(("step", step)) => number(step).map(MomentChoice::Step),
        Some(("step-end", step)) => number(step).map(MomentChoice::StepEnd),
        Some(("event", event)) => number(event).and_then(|event| u32::try_from(event).ok()).map(MomentChoice::Event),
        Some(("time", seconds)) => time(seconds).map(MomentChoice::Time),
        Some(("phase", name)) if !name.is_empty() => Some(MomentChoice::Phase(name.to_owned())),
        Some(("mark", name)) if !name.is_empty() => Some(MomentChoice::Mark(name.to_owned())),
        _ => None,
    }
    .ok_or_else(|| {
        format!("--at {text:?}: write peak, end, step:12, step-end:12, event:1000, time:12.5, mark:NAME or phase:NAME.")
    })
}

/// Reads seconds as microseconds.
fn time(seconds: &str) -> Option<u64> {
    let seconds: f64 = seconds.trim().trim_end_matches('s').parse().ok()?;
    // Casts of floating point saturate.
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1e6).round() as u64)
}

/// Reads what a beginning of paths stands for.
fn mapping(text: &str) -> Result<(String, String), String> {
    let (old, new) =
        text.split_once('=').filter(|(old, _)| !old.is_empty()).ok_or("write OLD=NEW, such as /old/src=/new/src")?;
    Ok((old.to_owned(), new.to_owned()))
}

/// Returns the streams or pools for which more or less is reserved.
fn changed_parts(parts: &[ChangedPart]) -> impl Iterator<Item = String> {
    let changed = parts.iter().filter(|part| part.growth() != 0);
    changed.map(|part| format!("{} {}", part.name, signed(part.growth())))
}

/// Returns a number of bytes with its sign.
pub(super) fn signed(bytes: i64) -> String {
    let sign = match bytes {
        0 => "",
        1.. => "+",
        _ => "−",
    };
    format!("{sign}{}", trace::units::Bytes(bytes.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_word_or_a_name_with_a_number() {
        for (text, want) in [
            ("peak", Some(MomentChoice::Peak)),
            ("end", Some(MomentChoice::End)),
            ("step:12", Some(MomentChoice::Step(12))),
            ("step-end:12", Some(MomentChoice::StepEnd(12))),
            ("event:3", Some(MomentChoice::Event(3))),
            ("time:1.5", Some(MomentChoice::Time(1_500_000))),
            ("time:2s", Some(MomentChoice::Time(2_000_000))),
            ("time:-1", None),
            ("time:inf", None),
            ("mark:a:b", Some(MomentChoice::Mark("a:b".to_owned()))),
            ("step:", None),
            ("step:x", None),
            ("event:5000000000", None),
            ("mark:", None),
            ("", None),
            ("top", None),
        ] {
            assert_eq!(moment(text).ok(), want, "{text}");
        }
    }
}
