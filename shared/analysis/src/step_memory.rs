//! The memory of each line in one step: at the step's end, and at most.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::steps::TrainingStep;
use query::StepMemory;
use replay::{Change, Replayed};
use trace::frames::StackId;

/// The memory of one step, in all and by a key of its stacks, such as their line.
#[derive(Clone, Debug)]
pub struct StepSums<K> {
    /// By key.
    pub lines: FxHashMap<K, StepMemory>,
    /// In all.
    pub all: StepMemory,
    /// The first position in the step at which most was in use.
    pub peak_position: u32,
}

impl<K: Copy + Eq + Hash> StepSums<K> {
    /// Sweeps a step. `active` are the active allocations where it begins.
    pub fn build(
        Replayed { trace, replay, .. }: Replayed<'_>,
        active: impl IntoIterator<Item = u32>,
        step: &TrainingStep,
        mut key: impl FnMut(StackId) -> K,
    ) -> Self {
        let mut sums = Self { lines: FxHashMap::default(), all: StepMemory::default(), peak_position: step.from };
        for id in active {
            let Some(allocation) = replay.allocations.get(id) else { continue };
            sums.all.end.add(allocation.requested);
            sums.lines.entry(key(allocation.stack)).or_default().end.add(allocation.requested);
        }
        sums.all.peak = sums.all.end.bytes;
        sums.lines.values_mut().for_each(|line| line.peak = line.end.bytes);
        let (mut swept, mut changed) = (step.from, Vec::new());
        replay.changes(trace, step.from, step.to, |position, change| {
            // All changes of one position belong together.
            if position != swept {
                sums.reach(swept, &mut changed);
                swept = position;
            }
            let (id, is_begin) = match change {
                Change::Begin(id) => (id, true),
                Change::End(id) => (id, false),
                Change::Freed(_) | Change::Reserved(_) => return,
            };
            let Some(allocation) = replay.allocations.get(id) else { return };
            let key = key(allocation.stack);
            changed.push(key);
            for sum in [sums.lines.entry(key).or_default(), &mut sums.all] {
                sum.change(allocation.requested, is_begin);
            }
        });
        sums.reach(swept, &mut changed);
        sums
    }

    /// Takes the sums at a position into the peaks.
    fn reach(&mut self, position: u32, changed: &mut Vec<K>) {
        for key in changed.drain(..) {
            if let Some(line) = self.lines.get_mut(&key) {
                line.peak = line.peak.max(line.end.bytes);
            }
        }
        if self.all.end.bytes > self.all.peak {
            (self.all.peak, self.peak_position) = (self.all.end.bytes, position);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use replay::Replay;

    use super::*;

    /// What a slow model finds: the state at every position of the step.
    fn slow(replay: &Replay, step: &TrainingStep) -> (FxHashMap<u32, StepMemory>, StepMemory) {
        let mut lines: FxHashMap<u32, StepMemory> = FxHashMap::default();
        let mut all = StepMemory::default();
        for position in step.from..=step.to {
            lines.values_mut().for_each(|line| line.end = Default::default());
            all.end = Default::default();
            for allocation in replay.active_at(position).into_iter().filter_map(|id| replay.allocations.get(id)) {
                all.end.add(allocation.requested);
                lines.entry(allocation.stack.0).or_default().end.add(allocation.requested);
            }
            all.peak = all.peak.max(all.end.bytes);
            lines.values_mut().for_each(|line| line.peak = line.peak.max(line.end.bytes));
        }
        (lines, all)
    }

    proptest! {
        #[test]
        fn a_sweep_agrees_with_every_state(
            events in proptest::collection::vec((0_u64..12, 1_u64..9, 0_u32..4, any::<bool>()), 1..80),
            ends in (0_u32..90, 0_u32..90),
        ) {
            let mut lines = "segment_alloc 0x1000000 20971520".to_owned();
            let mut live = [false; 12];
            for (place, size, line, frees) in events {
                let address = 0x100_0000 + place * 0x10_0000;
                if std::mem::replace(&mut live[place as usize], true) {
                    live[place as usize] = false;
                    lines += &format!("\n{} {address}", if frees { "free" } else { "free_requested" });
                    continue;
                }
                lines += &format!("\nalloc {address} {} f@m.py:{line}", size * 1_000);
            }
            let mut snapshot = trace::testing::snapshot(&lines);
            let trace = snapshot.devices.remove(0);
            let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
            let last = replay.positions();
            let (from, to) = (ends.0.min(ends.1).min(last), ends.0.max(ends.1).min(last));
            let step = TrainingStep { number: 1, from, to, is_whole: true };
            let input = Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay };
            let sums = StepSums::build(input, replay.active_at(from), &step, |stack| stack.0);
            let (wanted, all) = slow(&replay, &step);
            prop_assert_eq!(sums.all, all);
            // What began and ended at one position was never in a state.
            let found: FxHashMap<u32, StepMemory> =
                sums.lines.into_iter().filter(|(_, line)| line.peak > 0).collect();
            prop_assert_eq!(found, wanted);
            let peak = TrainingStep { from: sums.peak_position, to: sums.peak_position, ..step };
            let (_, at_peak) = slow(&replay, &peak);
            prop_assert_eq!(at_peak.peak, all.peak);
        }
    }
}
