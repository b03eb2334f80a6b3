//! The result of a search.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use query::whatif::{Bounds, Goal, Group, Outcome, Tuning};

use super::advice::{WORTH, advice, with_omissions};
use super::goal::{amount, rank};
use super::search::Tried;
use trace::order::SortFew;

/// Sorts and judges what was tried. `recorded` are the recorded settings and their outcome on the same device, of which
/// the process can have `capacity` bytes.
pub fn tuning(
    goal: Goal,
    tried: &[Tried],
    (recorded_conf, recorded): (&str, &Outcome),
    (bounds, capacity): (&Bounds, u64),
) -> Tuning {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: FxHashMap<Outcome, usize> = FxHashMap::default();
    let mut add = |outcome: &Outcome, conf: String, options: usize| {
        let place = match places.entry(*outcome) {
            Entry::Occupied(place) => *place.get(),
            Entry::Vacant(vacant) => {
                let is_recorded = outcome == recorded;
                let options = options as u32;
                let confs = Vec::new();
                groups.push(Group { outcome: *outcome, confs, options, is_on_front: false, is_recorded });
                *vacant.insert(groups.len() - 1)
            }
        };
        let group = &mut groups[place];
        if !group.confs.contains(&conf) {
            group.confs.push(conf);
        }
    };
    // With as many options, the recorded settings are preferred.
    add(recorded, recorded_conf.to_owned(), 0);
    let mut by_options: Vec<&Tried> = tried.iter().collect();
    by_options.sort_few_by_key(|tried| tried.candidate.options());
    for Tried { candidate, outcome } in by_options {
        add(outcome, candidate.conf(recorded_conf), candidate.options());
    }
    groups.sort_few_by_key(|group| rank(goal, &group.outcome, group.options as usize, recorded.fails()));
    mark_front(&mut groups);
    let (best_conf, best) = simplest(&groups, goal, recorded.fails())
        .and_then(|group| Some((group.confs.first()?.clone(), group.outcome)))
        .unwrap_or_else(|| (recorded_conf.to_owned(), *recorded));
    let advice = with_omissions(advice(goal, (&best_conf, &best), recorded, (bounds, capacity)), recorded_conf);
    Tuning { goal, tried: tried.len() as u32, groups, advice }
}

/// Returns the group with the fewest options of those that are within 1 % of the best. The groups are sorted for the goal.
fn simplest(groups: &[Group], goal: Goal, has_failed: bool) -> Option<&Group> {
    let best = groups.first()?;
    let most = amount(goal, &best.outcome, has_failed);
    let most = most.saturating_add(most / WORTH);
    let is_near = |group: &&Group| {
        group.outcome.fails() == best.outcome.fails() && amount(goal, &group.outcome, has_failed) <= most
    };
    // Of those with as few options the first one is taken, which is the best.
    groups.iter().filter(is_near).min_by_key(|group| group.options)
}

/// Marks the groups that no other one beats in both memory and calls.
fn mark_front(groups: &mut [Group]) {
    let mut order: Vec<usize> = (0..groups.len()).filter(|place| !groups[*place].outcome.fails()).collect();
    order.sort_few_by_key(|place| (groups[*place].outcome.peak_reserved, groups[*place].outcome.driver_calls()));
    let mut fewest = u64::MAX;
    for place in order {
        let calls = groups[place].outcome.driver_calls();
        if calls < fewest {
            fewest = calls;
            groups[place].is_on_front = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidate::Candidate;
    use super::*;

    fn outcome(peak_reserved: u64, device_allocs: u64, ooms: u64) -> Outcome {
        Outcome { peak_reserved, device_allocs, ooms, ..Outcome::default() }
    }

    #[test]
    fn groups_front_and_advice() {
        const GIB: u64 = 1 << 30;
        let plain = Candidate::default();
        let expandable = Candidate { expandable_segments: true, ..plain.clone() };
        let split = |mb| Candidate { max_split_size_mb: Some(mb), ..plain.clone() };
        let both = Candidate { expandable_segments: true, ..split(64) };
        let tried = |candidate: &Candidate, outcome| Tried { candidate: candidate.clone(), outcome };
        let all = [
            tried(&plain, outcome(16 * GIB, 20, 0)),
            tried(&both, outcome(11 * GIB, 300, 0)),
            tried(&expandable, outcome(11 * GIB, 300, 0)),
            // Not worth a second option.
            tried(&Candidate { large_segment_size_mb: Some(40), ..expandable.clone() }, outcome(11 * GIB - 1, 299, 0)),
            tried(&split(32), outcome(17 * GIB, 50, 0)),
            tried(&split(64), outcome(12 * GIB, 10, 1)),
        ];
        let bounds = Bounds { requested: 10 * GIB, exact_fit: 10 * GIB, event: 7, served: 10 * GIB };
        // The goal, what was recorded, the line that is recommended, a part of its text, and the lines of the front.
        let (kept, failed) = (outcome(16 * GIB, 20, 0), outcome(12 * GIB, 10, 1));
        let front = ["large_segment_size_mb:40,expandable_segments:True", ""];
        let cases = [
            (
                Goal::Reserved,
                "",
                kept,
                Some("expandable_segments:True"),
                "Reserves 11.0 GiB at the peak instead of 16.0 GiB.",
            ),
            (Goal::Calls, "", kept, None, "No setting saves as much as 1 % of the 20 calls"),
            (Goal::Fit, "", kept, None, "The recorded settings fit"),
            (
                Goal::Fit,
                "max_split_size_mb:64",
                failed,
                Some(""),
                "No request fails, with 16.0 GiB reserved at the peak.",
            ),
        ];
        for (goal, conf, recorded, want, text) in cases {
            let found = tuning(goal, &all, (conf, &recorded), (&bounds, 20 * GIB));
            assert_eq!(found.advice.conf.as_deref(), want, "{goal:?}");
            assert!(found.advice.text.contains(text), "{goal:?}: {}", found.advice.text);
            let left_out = found.advice.cost.ends_with(" It leaves out max_split_size_mb:64 of the recorded settings.");
            assert_eq!(left_out, !conf.is_empty(), "{}", found.advice.cost);
            assert_eq!(found.groups.len(), 5);
            assert_eq!(found.groups.iter().filter(|group| group.is_recorded).count(), 1);
            let mut on_front: Vec<_> = found.groups.iter().filter(|group| group.is_on_front).collect();
            on_front.sort_by_key(|group| group.outcome.peak_reserved);
            assert_eq!(on_front.iter().map(|group| group.confs[0].as_str()).collect::<Vec<_>>(), front);
        }
        // Where a request failed, a retry more matters less than the memory that is left.
        let retried = |peak, retries| Outcome { retries, ..outcome(peak, 300, 0) };
        let of_failed = |many| {
            let all = [tried(&split(288), retried(16 * GIB, 1)), tried(&expandable, retried(15 * GIB, many))];
            tuning(Goal::Fit, &all, ("", &failed), (&bounds, 16 * GIB)).advice.conf
        };
        assert_eq!(of_failed(2).as_deref(), Some("expandable_segments:True"));
        assert_eq!(of_failed(9).as_deref(), Some("max_split_size_mb:288"));
        // Nothing fits.
        let found = tuning(Goal::Fit, &all[5..], ("", &failed), (&bounds, 9 * GIB));
        assert_eq!(found.advice.conf, None);
        assert_eq!(
            found.advice.text,
            "No setting helps: the run needs 10.0 GiB in live tensors at once, and the process can have 9.00 GiB."
        );
        let more = Bounds { served: 11 * GIB, ..bounds };
        let found = tuning(Goal::Fit, &all[5..], ("", &failed), (&more, 9 * GIB));
        let want = "No setting helps: with the request that failed, the run needs 11.0 GiB in live tensors at once";
        assert!(found.advice.text.starts_with(want), "{}", found.advice.text);
        for (capacity, want) in [
            (12 * GIB, "None of the settings that were tried fits on 12.0 GiB"),
            // A run takes no more than there is: it began with that.
            (
                11 * GIB,
                "No setting can be said to fit: 12.0 GiB was reserved before the first event, and the process can have 11.0",
            ),
        ] {
            let found = tuning(Goal::Fit, &all[5..], ("", &failed), (&bounds, capacity));
            assert!(found.advice.text.starts_with(want), "{found:?}");
        }
    }
}
