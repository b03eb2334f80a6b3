//! The printed plan: for programs as JSON, and for people as text.

use std::fmt::{self, Write as _};

use plan::{Goal, Kind, Measure, Missing, PCIE_BYTES_PER_SECOND, Plan};
use query::whatif::SelfCheck;
use serde::Serialize;
use trace::text::quoted;
use trace::units::{Bytes, Micros, compared, distinguished};

use super::super::subject::Subject;
use super::super::whatif::write_check;

/// A plan with what it is of.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    file: String,
    device: i64,
    torch: &'static str,
    selfcheck: SelfCheck,
    /// The bytes that were reserved before the first event.
    reserved_at_start: u64,
    #[serde(flatten)]
    plan: Plan,
    /// What the recording lacks.
    missing: Vec<Missing>,
    /// The microseconds of a typical step, if the recording tells.
    step_us: Option<u64>,
    /// What costs of moving are counted by.
    pcie_bytes_per_second: u64,
}

impl Answer {
    pub(super) fn new(
        file: String,
        subject: &Subject,
        plan: Plan,
        (missing, step_us): (Vec<Missing>, Option<u64>),
    ) -> Self {
        Self {
            file,
            device: subject.device,
            torch: subject.baseline.profile.torch,
            selfcheck: subject.baseline.check.clone(),
            reserved_at_start: subject.requests.reserved_at_start(),
            plan,
            missing,
            step_us,
            pcie_bytes_per_second: PCIE_BYTES_PER_SECOND,
        }
    }

    /// Whether the plan reaches its goal.
    pub(super) fn is_reached(&self) -> bool {
        self.plan.is_reached
    }

    /// Returns the answer as text for people.
    pub(super) fn text(&self, is_verbose: bool) -> String {
        let mut out = String::new();
        // Writing to a string can't fail.
        let _ = self.write(&mut out, is_verbose);
        out
    }

    fn write(&self, out: &mut String, is_verbose: bool) -> fmt::Result {
        let Plan { measures, candidates, .. } = &self.plan;
        writeln!(out, "{}", self.headline())?;
        if !measures.is_empty() {
            writeln!(out)?;
            write_table(out, measures, "saved")?;
            writeln!(out, "saved: of what is reserved at the peak; live: of what is in live tensors then")?;
            for measure in measures.iter().filter(|measure| !measure.paste.is_empty()) {
                writeln!(out, "\n{} {}:", measure.kind.words(), measure.what)?;
                measure.paste.iter().try_for_each(|line| writeln!(out, "{}", format!("  {line}").trim_end()))?;
            }
        }
        if is_verbose && !candidates.is_empty() {
            writeln!(out, "\nEach by itself:")?;
            write_table(out, candidates, "saves")?;
        }
        writeln!(out)?;
        if let Some(hint) = self.in_pieces() {
            writeln!(out, "{hint}")?;
        }
        if self.plan.after.ends_early {
            writeln!(
                out,
                "! A request failed in the recording. The plan is counted up to there, and what follows is not known."
            )?;
        }
        for missing in &self.missing {
            writeln!(out, "! {}", missing.words())?;
        }
        if self.reserved_at_start > 0 {
            let at_start = Bytes(self.reserved_at_start);
            writeln!(
                out,
                "{at_start} was reserved before the first event. Its cached part is left out, since the plan would have applied then, \
                 too."
            )?;
        }
        self.write_assumptions(out)?;
        write_check(out, self.device, &self.selfcheck)
    }

    /// Returns the answer in one line.
    fn headline(&self) -> String {
        let Plan { goal, is_reached, missing_bytes, before, after, measures, .. } = &self.plan;
        let saved = Bytes(before.reserved.saturating_sub(after.reserved));
        let (needs, whole) = distinguished(Bytes(after.reserved), Bytes(before.reserved));
        match (goal, is_reached) {
            (Goal::Save(_), true) => format!("SAVES {saved} of {whole} reserved: needs {needs}"),
            (Goal::Fit(room), true) if after.ends_early => {
                let with = if measures.is_empty() { "as it is" } else { "with this plan" };
                let room = Bytes(*room);
                format!(
                    "PASSES the request that failed in the recording, {with}, in {room}: saves {saved} of {whole} reserved, needs {needs} up to \
                     there"
                )
            }
            (Goal::Fit(room), true) if measures.is_empty() => {
                format!("FITS {} as it is: reserves {whole}", Bytes(*room))
            }
            (Goal::Fit(room), true) => {
                format!("FITS {} with this plan: saves {saved} of {whole} reserved, needs {needs}", Bytes(*room))
            }
            (_, false) => {
                let missing = Bytes(*missing_bytes);
                let goal = match goal {
                    Goal::Save(bytes) => format!("saving {}", Bytes(*bytes)),
                    Goal::Fit(room) => format!("fitting {}", Bytes(*room)),
                };
                let best = match measures.is_empty() {
                    true => format!("nothing was found that saves anything of {whole} reserved"),
                    false => format!("the plan that was found saves {saved} of {whole} reserved, needs {needs}"),
                };
                // With 0, it would be enough if memory were not in pieces.
                match *missing_bytes == 0 || measures.is_empty() {
                    true => format!("FALLS SHORT of {goal}: {best}"),
                    false => format!("FALLS SHORT of {goal} by {missing}: {best}"),
                }
            }
        }
    }

    /// Returns what to do about memory in pieces, if it decides what is saved.
    fn in_pieces(&self) -> Option<String> {
        let Plan { measures, candidates, before, after, is_reached, .. } = &self.plan;
        let tune = format!("Settings may help: vramscope tune {}", quoted(&self.file));
        let (reserved, live) =
            (before.reserved.saturating_sub(after.reserved), before.allocated.saturating_sub(after.allocated));
        if !measures.is_empty() && live < reserved / 4 {
            return Some(format!("Most of what is saved is fragmentation, not live tensors. {tune}"));
        }
        let largest = candidates.iter().max_by_key(|measure| measure.saved_allocated)?;
        let (reserved, live) = (largest.saved_reserved, largest.saved_allocated);
        (!is_reached && reserved < live / 4).then(|| {
            format!(
                "{} {} saves {} of live tensors, but {} of what is reserved: memory is in pieces. {tune}",
                largest.kind.words(),
                largest.what,
                Bytes(live),
                Bytes(reserved)
            )
        })
    }

    /// Writes what the costs are counted by.
    fn write_assumptions(&self, out: &mut String) -> fmt::Result {
        let has = |kinds: &[Kind]| self.plan.measures.iter().any(|measure| kinds.contains(&measure.kind));
        if has(&[Kind::Checkpoint]) {
            let step = self.step_us.and_then(|us| i64::try_from(us).ok()).map(Micros);
            let step = step.map(|us| format!(" A recorded step took {us}.")).unwrap_or_default();
            writeln!(
                out,
                "Time is estimated: shares of the forward pass by the bytes that it asks for, and the forward pass as a third of a \
                 step.{step}"
            )?;
        }
        if has(&[Kind::OffloadActivations, Kind::OffloadOptimizer]) {
            let rate = PCIE_BYTES_PER_SECOND / 1_000_000_000;
            writeln!(
                out,
                "Moving is counted at {rate} GB/s over PCIe, with pinned memory, and as if nothing else ran meanwhile."
            )?;
        }
        if self.plan.measures.is_empty() {
            return Ok(());
        }
        let (after, before) = compared(Bytes(self.plan.after.allocated), Bytes(self.plan.before.allocated));
        writeln!(
            out,
            "In live tensors, {after} instead of {before}. Counted by torch {}'s allocator, request by request.",
            self.torch
        )
    }
}

/// Writes measures as a table.
fn write_table(out: &mut String, measures: &[Measure], saved: &str) -> fmt::Result {
    let whats: Vec<String> =
        measures.iter().map(|measure| format!("{} {}", measure.kind.words(), measure.what)).collect();
    let width = whats.iter().map(|what| what.chars().count()).max().unwrap_or_default();
    writeln!(out, "{saved:>10}  {:>10}  {:<width$}  cost", "live", "what")?;
    for (measure, what) in measures.iter().zip(&whats) {
        let [reserved, live] = [measure.saved_reserved, measure.saved_allocated].map(|bytes| Bytes(bytes).to_string());
        writeln!(out, "{reserved:>10}  {live:>10}  {what:<width$}  {}", measure.cost_words)?;
    }
    Ok(())
}
