//! Two runs' stacks among one another, for a flame graph of their difference.
//!
//! A frame of the first run has the number of the second run's frame that it is, found as lines are: where it moved, stacks
//! through it still are the same stacks. What the second run has not comes after all of its own.

use analysis::flame::Leaf;
use analysis::site::{SiteInput, Sites};
use query::run_profile::ProfiledLine;
use query::run_stacks::{RunFrame, RunStack, RunStacks};
use replay::index::Index;
use rustc_hash::FxHashMap;
use trace::frames::{Frame, FrameId, StackRecord, Symbols};
use trace::totals::Amount;

use crate::pairing::{pairs, sort};

/// Returns the stacks of a run, for another one's session. Only its own sums count.
pub fn run_stacks(symbols: &Symbols, leaves: &[Leaf]) -> RunStacks {
    let mut numbers: FxHashMap<FrameId, u32> = FxHashMap::default();
    let mut frames: Vec<RunFrame> = Vec::new();
    let mut number = |id: FrameId| {
        *numbers.entry(id).or_insert_with(|| {
            let Frame { name, filename, line } = symbols.frame(id);
            let [function, file] = [name, filename].map(|text| symbols.unshown(text).into_owned());
            frames.push(RunFrame { function, file, number: line });
            frames.len() as u32 - 1
        })
    };
    let mut stack = |leaf: &Leaf| RunStack {
        frames: symbols.stack(leaf.stack).iter().map(|id| number(*id)).collect(),
        is_lost: symbols.recorded(leaf.stack) == StackRecord::Lost,
        category: leaf.category,
        held: Amount { bytes: leaf.bytes, count: leaf.count },
    };
    let stacks = leaves.iter().map(&mut stack).collect();
    RunStacks { frames, stacks }
}

/// The stacks of a run, and those of another one among them.
#[derive(Debug)]
pub struct MergedStacks {
    /// The symbols of the run, and then what only the other one has.
    pub symbols: Symbols,
    /// Their lines and colours.
    pub sites: Sites,
    /// The leaves of the other run, numbered like those of this one.
    pub base: Vec<Leaf>,
}

impl MergedStacks {
    /// Merges the stacks of another run into those of a run, whose leaves are `own`: frames are found among theirs.
    pub fn new(symbols: &Symbols, sites: &Sites, own: &[Leaf], base: &RunStacks) -> Self {
        let mut symbols = symbols.clone();
        let numbers = numbers(&mut symbols, own, base);
        let leaf = |stack: &RunStack| {
            let frames: Vec<FrameId> =
                stack.frames.iter().filter_map(|at| numbers.get(*at as usize).copied()).collect();
            let id = match frames.as_slice() {
                [] if stack.is_lost => symbols.lose_stack(),
                frames => symbols.intern_stack(frames),
            };
            let Amount { bytes, count } = stack.held;
            Leaf { stack: id, bytes, count, category: stack.category, ..Leaf::default() }
        };
        let base = base.stacks.iter().map(leaf).collect();
        let mut sites = Sites::with(sites.best_frames().overrides().clone());
        sites.extend(SiteInput { symbols: &symbols, usages: &[] });
        Self { symbols, sites, base }
    }

    /// Returns the bytes of memory that they occupy.
    pub fn bytes(&self) -> usize {
        self.symbols.memory() + self.sites.bytes() + size_of_val(self.base.as_slice())
    }
}

/// Returns the number of each frame of the other run.
fn numbers(symbols: &mut Symbols, own: &[Leaf], base: &RunStacks) -> Vec<FrameId> {
    let mut through: FxHashMap<FrameId, Amount> = FxHashMap::default();
    for leaf in own {
        for frame in symbols.stack(leaf.stack) {
            through.entry(*frame).or_default().plus(Amount { bytes: leaf.bytes, count: leaf.count });
        }
    }
    let mut base_through = vec![Amount::default(); base.frames.len()];
    for stack in &base.stacks {
        for at in &stack.frames {
            if let Some(sum) = base_through.get_mut(*at as usize) {
                sum.plus(stack.held);
            }
        }
    }
    // The frames of both as lines; `stack` has the number of the frame.
    let mut after = Vec::with_capacity(through.len());
    for (id, held) in through {
        let Frame { name, filename, line: number } = symbols.frame(id);
        let [function, file] = [name, filename].map(|text| symbols.unshown(text).into_owned());
        after.push(ProfiledLine { function, file, number, held, stack: id.0, ..ProfiledLine::default() });
    }
    let mut before = Vec::with_capacity(base.frames.len());
    for ((frame, held), stack) in base.frames.iter().zip(base_through).zip(0..) {
        let RunFrame { function, file, number } = frame.clone();
        before.push(ProfiledLine { function, file, number, held, stack, ..ProfiledLine::default() });
    }
    sort(&mut after);
    sort(&mut before);
    let mut found: Vec<Option<FrameId>> = vec![None; base.frames.len()];
    for pair in pairs(&before, &after, &[]) {
        let one = pair.before.and_then(|at| before.get(at)).and_then(|line| found.get_mut(line.stack as usize));
        if let (Some(place), Some(other)) = (one, pair.after.and_then(|at| after.get(at))) {
            *place = Some(FrameId(other.stack));
        }
    }
    base.frames
        .iter()
        .zip(found)
        .map(|(frame, found)| {
            found.unwrap_or_else(|| {
                let [name, filename] = [&frame.function, &frame.file].map(|text| symbols.intern(text.as_bytes()));
                symbols.intern_frame(Frame { name, filename, line: frame.number })
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use analysis::flame::difference;
    use proptest::prelude::*;
    use trace::testing::stack;

    use super::*;

    /// Stacks with their bytes: `f@m.py:3 g@m.py:9 = 40`, innermost first.
    fn run(text: &str) -> (Symbols, Vec<Leaf>) {
        let mut symbols = Symbols::default();
        let mut leaf = |line: &str| {
            let (frames, bytes) = line.split_once('=').unwrap();
            let stack = stack(&mut symbols, &frames.split_whitespace().collect::<Vec<_>>());
            Leaf { stack, bytes: bytes.trim().parse().unwrap(), count: 1, ..Leaf::default() }
        };
        let leaves = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(&mut leaf).collect();
        (symbols, leaves)
    }

    /// Returns the difference as it is written above, with the bytes before and after.
    fn between(before: &str, after: &str) -> Vec<String> {
        let ((old, base), (new, own)) = (run(before), run(after));
        let mut sites = Sites::default();
        sites.extend(SiteInput { symbols: &new, usages: &[] });
        let merged = MergedStacks::new(&new, &sites, &own, &run_stacks(&old, &base));
        let frame = |id: &FrameId| {
            let Frame { name, filename, line } = merged.symbols.frame(*id);
            format!("{}@{}:{line} ", merged.symbols.text(name), merged.symbols.text(filename))
        };
        let row = |leaf: &Leaf| {
            assert!(merged.sites.contains(leaf.stack));
            let frames: String = merged.symbols.stack(leaf.stack).iter().map(frame).collect();
            format!("{frames}{} > {}", leaf.before, leaf.bytes)
        };
        difference(&merged.base, &own).iter().map(row).collect()
    }

    #[test]
    fn equal_stacks_have_one_leaf_and_others_one_each() {
        assert_eq!(
            between(
                "f@m.py:3 main@t.py:9 = 40\n g@m.py:7 main@t.py:9 = 5",
                "f@m.py:3 main@t.py:9 = 60\n h@m.py:8 main@t.py:9 = 1"
            ),
            ["f@m.py:3 main@t.py:9 40 > 60", "h@m.py:8 main@t.py:9 0 > 1", "g@m.py:7 main@t.py:9 5 > 0"]
        );
    }

    #[test]
    fn a_stack_through_lines_that_moved_is_the_same_stack() {
        assert_eq!(
            between(
                "f@/old/m.py:3 main@t.py:9 = 40\n f@/old/m.py:4 main@t.py:9 = 50",
                "f@/new/m.py:5 main@t.py:12 = 40\n f@/new/m.py:6 main@t.py:12 = 70",
            ),
            ["f@/new/m.py:5 main@t.py:12 40 > 40", "f@/new/m.py:6 main@t.py:12 50 > 70"]
        );
    }

    #[test]
    fn what_has_no_stack_or_lost_it_stays_apart() {
        let (symbols, own) = run("f@m.py:3 = 40\n = 7");
        let lost = RunStack { is_lost: true, held: Amount { bytes: 3, count: 1 }, ..RunStack::default() };
        let none = RunStack { held: Amount { bytes: 9, count: 2 }, ..RunStack::default() };
        // A frame that is not there is left out.
        let garbled = RunStack { frames: vec![5], held: Amount { bytes: 1, count: 1 }, ..RunStack::default() };
        let base = RunStacks { frames: Vec::new(), stacks: vec![lost, none, garbled] };
        let merged = MergedStacks::new(&symbols, &Sites::default(), &own, &base);
        let all = difference(&merged.base, &own);
        let of = |record| -> Vec<(u64, u64)> {
            let is_it = |leaf: &&Leaf| merged.symbols.recorded(leaf.stack) == record;
            all.iter().filter(is_it).map(|leaf| (leaf.before, leaf.bytes)).collect()
        };
        assert_eq!((of(StackRecord::Lost), of(StackRecord::Nothing)), (vec![(3, 0)], vec![(10, 7)]));
    }

    fn stacks() -> impl Strategy<Value = Vec<(Vec<u32>, u64)>> {
        prop::collection::vec((prop::collection::vec(0..12_u32, 0..5), 1..100_u64), 0..12)
    }

    fn text(stacks: &[(Vec<u32>, u64)], moved: u32) -> String {
        let frame = |at: &u32| format!("f{}@m{}.py:{}", at % 4, at % 2, at + moved);
        let line = |(frames, bytes): &(Vec<u32>, u64)| {
            format!("{} = {bytes}\n", frames.iter().map(frame).collect::<Vec<_>>().join(" "))
        };
        stacks.iter().map(line).collect()
    }

    proptest! {
        /// A run differs from itself in nothing, also if all of its lines moved.
        #[test]
        fn a_run_that_only_moved_differs_in_nothing(stacks in stacks(), moved in 0..3_u32) {
            for row in between(&text(&stacks, 0), &text(&stacks, moved)) {
                let (_, sums) = row.rsplit_once(":").unwrap_or(("", &row));
                let (before, after) = sums.split_once(" > ").unwrap();
                prop_assert_eq!(before.rsplit(' ').next(), Some(after), "{}", row);
            }
        }

        /// Each byte of both runs is in one leaf.
        #[test]
        fn both_sums_are_kept(before in stacks(), after in stacks()) {
            let sum = |stacks: &[(Vec<u32>, u64)]| stacks.iter().map(|(_, bytes)| *bytes).sum::<u64>();
            let (mut one, mut other) = (0, 0);
            for row in between(&text(&before, 0), &text(&after, 0)) {
                let (left, bytes) = row.split_once(" > ").unwrap();
                one += left.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
                other += bytes.parse::<u64>().unwrap();
            }
            prop_assert_eq!((one, other), (sum(&before), sum(&after)));
        }
    }
}
