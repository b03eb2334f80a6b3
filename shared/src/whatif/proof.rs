//! Checks on a trace what a verdict advises.

use super::baseline::Baseline;
use super::outcome::Outcome;
use super::requests::Requests;
use super::terms::Terms;
use super::tune::{Goal, Search, Tried, merged};
use crate::allocator::AllocatorConfig;
use crate::diagnosis::{Cause, Verdict};
use crate::finding::{ALLOC_CONF, Remedy};
use crate::units::{Bytes, counted_as};

/// The most requests of a trace for which other settings are searched if those that were advised don't help: so many runs of
/// it take about a second.
const SEARCHED_REQUESTS: usize = 200_000;

/// Less than one part in this many of the memory is as good as nothing.
const ALL_PART: u64 = 100;

impl Requests {
    /// Runs the trace under each setting that the verdict on a failed request advises. A remedy that serves the request is
    /// marked as checked, with what it comes to, and stands first; one that doesn't is removed. If none of them helps memory
    /// in pieces, the settings by themselves are searched for one that does.
    ///
    /// Changes nothing if the trace doesn't come out as recorded under its own settings, `conf`, or doesn't tell how much
    /// memory the process could have: nothing would be proven.
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
            let setting = remedy.setting().map(|setting| merged(conf, setting));
            match setting.and_then(|conf| run(&conf)) {
                Some(outcome) if !outcome.fails() => checked.push(proven(remedy, &recorded, &outcome, capacity)),
                Some(_) => has_failed = true,
                None => advice.push(remedy),
            }
        }
        let is_in_pieces = verdict.cause == Cause::Fragmented;
        if checked.is_empty() && is_in_pieces && self.asked.len() <= SEARCHED_REQUESTS {
            checked.extend(self.searched(conf, baseline, (&recorded, capacity)));
        }
        let most = kept.len().max(1);
        verdict.remedies = checked.into_iter().chain(advice).take(most).collect();
        if verdict.remedies.is_empty() && has_failed {
            // No setting helps, and there is no other advice than what the facts say.
            verdict.remedies = kept.into_iter().filter(|remedy| remedy.setting().is_none()).collect();
        }
    }

    /// Returns the best single setting under which the request is served, if there is one.
    fn searched(&self, conf: &str, baseline: &Baseline, (recorded, capacity): (&Outcome, u64)) -> Option<Remedy> {
        let tried = Search::new(baseline.profile, Goal::Fit, false).round(&[]).into_iter().filter_map(|candidate| {
            let config = AllocatorConfig::from_conf(&candidate.conf(conf), baseline.profile).ok()?;
            let outcome = self.run(&Terms::ample(baseline.profile, config).on(capacity)).ok()?;
            Some(Tried { candidate, outcome })
        });
        let best = tried.min_by_key(|tried| Goal::Fit.rank(&tried.outcome, tried.candidate.options(), true))?;
        let line = best.candidate.conf(conf);
        (!best.outcome.fails()).then(|| {
            let text = match line.is_empty() {
                true => "Leave out the recorded settings.".to_owned(),
                false => format!("Set {line}."),
            };
            proven(Remedy::advice(text).with_copy(format!("{ALLOC_CONF}{line}")), recorded, &best.outcome, capacity)
        })
    }
}

/// Adds to a remedy what it comes to, on a device of which the process can have `capacity` bytes.
fn proven(remedy: Remedy, recorded: &Outcome, outcome: &Outcome, capacity: u64) -> Remedy {
    let (reserved, before) = (Bytes(outcome.peak_reserved), Bytes(recorded.peak_reserved));
    let retries = counted_as(outcome.retries, "retry", "retries");
    let reserved = match outcome.peak_reserved == recorded.peak_reserved {
        true => format!("{reserved} reserved, as before"),
        false => format!("{reserved} reserved instead of {before}"),
    };
    let all =
        if outcome.peak_reserved > capacity - capacity / ALL_PART { ", all that the process can have" } else { "" };
    Remedy { text: format!("{} The request fits: {retries}, {reserved}{all}.", remedy.text), checked: true, ..remedy }
}
