//! Checks on a trace what a verdict advises.

use super::baseline::Baseline;
use super::requests::Requests;
use super::terms::{AMPLE, Terms};
use super::tune::goal::rank;
use super::tune::{Candidate, Search, Tried};
use allocator::AllocatorConfig;
use query::diagnosis::{Cause, Verdict};
use query::finding::Remedy;
use query::setting::left_out;
use query::whatif::{Goal, Outcome};
use trace::text::Escaped;
use trace::units::{Bytes, compared, counted_as};

/// The most requests of a trace for which other settings are searched if those that were advised don't help. The runs
/// of such a search take about a second.
const SEARCHED_REQUESTS: usize = 200_000;

/// Appended to a setting that serves the request of a run whose steps need more and more.
const DELAYED: &str = " It only delays the failure, since steps need more and more.";

/// Less than one part in this many of the memory counts as nothing.
const ALL_PART: u64 = 100;

impl Requests {
    /// Runs the trace under each setting that the verdict on a failed request advises. A remedy that serves the request
    /// is marked as checked, gets its outcome, and moves to the front, or after advice about growth; one that doesn't
    /// is removed. If none of them helps memory in pieces, the settings by themselves are searched for one that does.
    ///
    /// Changes nothing if the trace doesn't come out as recorded under its own settings, `conf`, or doesn't show how
    /// much memory the process could have: nothing would be proven.
    pub fn prove(&self, verdict: &mut Verdict, baseline: &Baseline, conf: &str) {
        let Some(capacity) = self.capacity().filter(|_| verdict.position.is_some() && baseline.check.is_exact()) else {
            return;
        };
        let run = |conf: &str| {
            let config = AllocatorConfig::from_conf(conf, baseline.profile).ok()?;
            self.run(&Terms::ample(baseline.profile, config).on(capacity)).ok()
        };
        let Some(recorded) = run(conf).filter(Outcome::fails) else { return };
        let (mut checked, mut advice) = (Vec::new(), Vec::new());
        let (mut has_failed, kept) = (false, verdict.remedies.clone());
        for remedy in std::mem::take(&mut verdict.remedies) {
            match remedy.setting().and_then(run) {
                Some(outcome) if !outcome.fails() => {
                    checked.push(proven(remedy, (&recorded, &outcome), capacity, verdict.is_growing));
                }
                Some(_) => has_failed = true,
                None => advice.push(remedy),
            }
        }
        let is_in_pieces = verdict.cause == Cause::Fragmented;
        if checked.is_empty() && is_in_pieces && self.asked.len() <= SEARCHED_REQUESTS {
            checked.extend(self.searched(conf, baseline, (&recorded, capacity, verdict.is_growing)));
        }
        let most = kept.len().max(1);
        // What grows comes before what only delays the failure.
        let first: Vec<Remedy> = advice.drain(..usize::from(verdict.is_growing).min(advice.len())).collect();
        verdict.remedies = first.into_iter().chain(checked).chain(advice).take(most).collect();
        if verdict.remedies.is_empty() && has_failed {
            // No setting helps, and there is no other advice than what the facts say.
            verdict.remedies = kept.into_iter().filter(|remedy| remedy.setting().is_none()).collect();
        }
    }

    /// Runs the trace under each setting that the verdict on a run without a failed request advises, on the recorded device. A remedy
    /// with which less is reserved is marked as checked, and gets its outcome. Changes nothing if the trace doesn't come out as
    /// recorded.
    pub fn prove_savings(&self, verdict: &mut Verdict, baseline: &Baseline, conf: &str) {
        let names_setting = verdict.remedies.iter().any(|remedy| remedy.setting().is_some());
        if verdict.position.is_some() || !names_setting || !baseline.check.is_exact() {
            return;
        }
        let run = |conf: &str| {
            let config = AllocatorConfig::from_conf(conf, baseline.profile).ok()?;
            self.run(&Terms::ample(baseline.profile, config).on(self.capacity().unwrap_or(AMPLE))).ok()
        };
        let Some(recorded) = run(conf) else { return };
        for remedy in &mut verdict.remedies {
            let Some(outcome) = remedy.setting().and_then(run) else { continue };
            if outcome.peak_reserved < recorded.peak_reserved - recorded.peak_reserved / ALL_PART {
                let (after, before) = compared(Bytes(outcome.peak_reserved), Bytes(recorded.peak_reserved));
                remedy.text += &format!(" With that, {after} is reserved at the peak instead of {before}.");
                remedy.checked = true;
            }
        }
    }

    /// Returns the best single setting under which the request is served, if there is one: in addition to the settings
    /// of the run, or, if none is, without those of them that a search changes.
    fn searched(
        &self,
        conf: &str,
        baseline: &Baseline,
        (recorded, capacity, is_growing): (&Outcome, u64, bool),
    ) -> Option<Remedy> {
        let candidates = Search::new(baseline.profile, Goal::Fit, false).round(&[]);
        let best = |line: fn(&Candidate, &str) -> String| {
            let tried = candidates.iter().filter_map(|candidate| {
                let config = AllocatorConfig::from_conf(&line(candidate, conf), baseline.profile).ok()?;
                let outcome = self.run(&Terms::ample(baseline.profile, config).on(capacity)).ok()?;
                (!outcome.fails()).then(|| Tried { candidate: candidate.clone(), outcome })
            });
            let best = tried.min_by_key(|tried| rank(Goal::Fit, &tried.outcome, tried.candidate.options(), true))?;
            Some((line(&best.candidate, conf), best.outcome))
        };
        let (line, outcome) = best(Candidate::added_to).or_else(|| best(Candidate::conf))?;
        let without = left_out(conf, &line);
        let text = match (line.is_empty(), without.is_empty()) {
            (true, _) => "Leave out the recorded settings.".to_owned(),
            (_, true) => format!("Set {}.", Escaped(&line)),
            (_, false) => format!("Set {}, and leave out {}.", Escaped(&line), Escaped(&without.join(" and "))),
        };
        Some(proven(Remedy::advice(text).with_setting(&line), (recorded, &outcome), capacity, is_growing))
    }
}

/// Adds to a remedy its outcome on a device of which the process can have `capacity` bytes. In a run that `is_growing`,
/// a later request fails nonetheless.
fn proven(remedy: Remedy, (recorded, outcome): (&Outcome, &Outcome), capacity: u64, is_growing: bool) -> Remedy {
    let (reserved, before) = compared(Bytes(outcome.peak_reserved), Bytes(recorded.peak_reserved));
    let retries = counted_as(outcome.retries, "retry", "retries");
    let change = if reserved == before { String::new() } else { format!(" instead of {before}") };
    let is_all = outcome.peak_reserved > capacity - capacity / ALL_PART;
    let all = if is_all { ", which is all that the process can have" } else { "" };
    let later = if is_growing { DELAYED } else { "" };
    let text =
        format!("{} The request fits: {retries}, {reserved} reserved at the peak{change}{all}.{later}", remedy.text);
    Remedy { text, checked: true, ..remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// What is said of a setting under which `peak` MiB are reserved instead of `before`, of 1 GiB.
    fn said(before: u64, peak: u64, is_growing: bool) -> String {
        let of = |peak_reserved| Outcome { peak_reserved, retries: 4, ..Outcome::default() };
        let remedy = proven(Remedy::advice("Set it."), (&of(before * MIB), &of(peak * MIB)), 1_024 * MIB, is_growing);
        assert!(remedy.checked);
        remedy.text
    }

    #[test]
    fn only_what_differs_is_compared_and_in_one_unit() {
        let cases = [
            (1_014, 980, "Set it. The request fits: 4 retries, 980 MiB reserved at the peak instead of 1,014 MiB."),
            (982, 982, "Set it. The request fits: 4 retries, 982 MiB reserved at the peak."),
            (
                1_022,
                1_024,
                "Set it. The request fits: 4 retries, 1.00 GiB reserved at the peak, which is all that the process can have.",
            ),
        ];
        for (before, peak, want) in cases {
            assert_eq!(said(before, peak, false), want);
        }
    }

    #[test]
    fn where_steps_need_more_and_more_a_setting_only_delays_the_failure() {
        let want = "982 MiB reserved at the peak. It only delays the failure, since steps need more and more.";
        assert!(said(982, 982, true).ends_with(want));
    }
}
