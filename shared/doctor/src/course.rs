//! How memory use developed before a request failed: whether it rose for a moment above what the program uses
//! otherwise, as when a checkpoint is saved, or to a level that no earlier step had.

use super::Case;
use analysis::site::label;
use analysis::stack_traits::{StackTraits, Traits};
use replay::Change;
use replay::index::Index;
use trace::frames::StackId;

/// Equal parts that the events before the rise are divided into to count steps.
const PARTS: u32 = 512;
/// The rise must begin in the last part of the events before the failure: one in this many. Before it, there have to be
/// steps that show what the program uses otherwise.
const LAST_PART: u32 = 3;
/// Steps that a program must have gone through without the line.
const LEAST_STEPS: usize = 2;
/// The line must hold at least one part in this many of the memory in use.
const LEAST_PART: u64 = 10;

/// A rise for a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spike {
    /// The line that rose.
    pub(super) line: String,
    /// A stack whose line that is.
    pub(super) stack: StackId,
    /// What it held when the request failed.
    pub(super) bytes: u64,
    /// The most requested bytes that the program used before.
    pub(super) otherwise: u64,
}

/// The memory of one call site.
#[derive(Clone, Copy, Default)]
struct SiteMemory {
    bytes: u64,
    /// The position at which it last began to hold something.
    since: u32,
    /// How often it began to.
    times: u32,
}

/// The requested memory up to a position: of each call site, and over time.
pub(super) struct MemoryHistory {
    position: u32,
    sites: Vec<SiteMemory>,
    total: u64,
    /// The least and the most in each part of the events. In a part without a change, the least is above the most.
    parts: Vec<(u64, u64)>,
}

impl MemoryHistory {
    pub(super) fn until(case: &Case<'_>, position: u32) -> Self {
        let allocations = &case.replay.allocations;
        let allocated = |id: u32| {
            let i = id as usize;
            (allocations.stack.get(i).unwrap_or(0) as usize, allocations.requested.get(i).unwrap_or(0))
        };
        let parts = vec![(u64::MAX, 0); PARTS as usize];
        let mut history = Self { position, sites: Vec::new(), total: 0, parts };
        for id in case.replay.active_at(0) {
            let (stack, bytes) = allocated(id);
            history.begin(0, stack, bytes);
        }
        case.replay.changes(case.trace, 0, position, |now, change| {
            match change {
                Change::Begin(id) => {
                    let (stack, bytes) = allocated(id);
                    history.begin(now, stack, bytes);
                }
                Change::End(id) => {
                    let (stack, bytes) = allocated(id);
                    if let Some(site) = history.sites.get_mut(stack) {
                        site.bytes = site.bytes.saturating_sub(bytes);
                    }
                    history.total = history.total.saturating_sub(bytes);
                }
                Change::Freed(_) | Change::Reserved(_) => return,
            }
            let (part, total) = (history.part(now), history.total);
            if let Some((least, most)) = history.parts.get_mut(part) {
                (*least, *most) = ((*least).min(total), (*most).max(total));
            }
        });
        history
    }

    fn begin(&mut self, now: u32, stack: usize, bytes: u64) {
        if self.sites.len() <= stack {
            self.sites.resize(stack + 1, SiteMemory::default());
        }
        let Some(site) = self.sites.get_mut(stack) else { return };
        if site.bytes == 0 {
            (site.since, site.times) = (now, site.times.saturating_add(1));
        }
        site.bytes = site.bytes.saturating_add(bytes);
        self.total = self.total.saturating_add(bytes);
    }

    /// Returns the part of the events that a position lies in.
    fn part(&self, position: u32) -> usize {
        (u64::from(position) * u64::from(PARTS) / (u64::from(self.position) + 1)) as usize
    }

    /// Returns the spike in which a request of `requested` bytes failed, if there was one.
    pub(super) fn spike(&self, case: &Case<'_>, requested: u64) -> Option<Spike> {
        let latest = |site: &SiteMemory| {
            let is_late = site.since > self.position - self.position / LAST_PART;
            if is_late { site.bytes } else { 0 }
        };
        // Stacks without a frame combine many lines.
        let is_named = |stack: u32| case.best_frames.frame(case.symbols.stack(StackId(stack))).is_some();
        let named = (0_u32..).zip(&self.sites).filter(|(stack, _)| is_named(*stack));
        let (stack, site) = named.max_by_key(|(_, site)| latest(site))?;
        let bytes = latest(site);
        // An optimizer makes its state at its first step, and keeps it.
        let stack = StackId(stack);
        if StackTraits::build(case.symbols).of(stack).has(Traits::OPTIMIZER) {
            return None;
        }
        if bytes == 0 || bytes < requested || bytes < self.total / LEAST_PART {
            return None;
        }
        let before = self.parts.get(..self.part(site.since)).unwrap_or(&[]);
        let otherwise = before.iter().map(|(_, most)| *most).max()?;
        let steps = steps(before, otherwise);
        let is_rare = site.times.saturating_sub(1) as usize * 2 <= steps;
        let is_above = self.total.saturating_add(requested) > otherwise;
        (steps >= LEAST_STEPS && is_rare && is_above).then(|| Spike {
            line: label(case.symbols, case.best_frames, stack),
            stack,
            bytes: self.held_by_line(case, stack),
            otherwise,
        })
    }

    /// Returns what all stacks held whose line is that of `stack`.
    fn held_by_line(&self, case: &Case<'_>, stack: StackId) -> u64 {
        let frame = |stack: StackId| case.best_frames.frame(case.symbols.stack(stack));
        let line = frame(stack);
        let own = (0_u32..).zip(&self.sites).filter(|(other, site)| {
            let other = StackId(*other);
            site.bytes > 0 && (other == stack || line.is_some() && frame(other) == line)
        });
        own.fold(0, |sum, (_, site)| sum.saturating_add(site.bytes))
    }

    /// Returns whether a request of `requested` bytes would have led above all that was ever held: nothing shows how much
    /// the program would have gone on to need.
    pub(super) fn is_new_high(&self, requested: u64) -> bool {
        let most = self.parts.iter().map(|(_, most)| *most).max().unwrap_or(0);
        self.total.saturating_add(requested) > most
    }
}

/// Counts how often memory rose from low to high: the steps of a training run.
fn steps(parts: &[(u64, u64)], peak: u64) -> usize {
    // While the program sets up, memory is low without a step.
    let later = parts.get(parts.len() / 2..).unwrap_or(&[]);
    let floor = later.iter().map(|(least, _)| *least).min().unwrap_or(0).min(peak);
    let (low, high) = (floor + (peak - floor) / 4, peak - (peak - floor) / 4);
    let (mut count, mut is_high) = (0, false);
    for &(least, most) in parts.iter().filter(|(least, most)| least <= most) {
        let was_high = is_high && least > low;
        if most >= high && !was_high {
            count += 1;
        }
        is_high = most >= high || was_high;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestCase;

    /// Steps that each hold 8 MB for a moment, beside 4 MB of weights; then `end`.
    fn spike(steps: usize, end: &str, requested: u64) -> Option<(String, u64)> {
        let mut lines = "segment_alloc 0x10000000 104857600
alloc 0x10000000 4000000 weights@/m/a.py:1
"
        .to_owned();
        for step in 0..steps {
            for part in 0..8_u64 {
                lines += &format!("alloc {} 1000000 act{part}@/m/a.py:2\n", 0x1100_0000 + part * 0x10_0000);
            }
            for part in 0..8_u64 {
                lines += &format!("free {}\n", 0x1100_0000 + part * 0x10_0000);
            }
            if step == 3 && steps > 6 {
                lines += "alloc 0x12000000 3000000 clone@/m/save.py:7\nfree 0x12000000\n";
            }
        }
        lines += end;
        let test_case = TestCase::new(&lines);
        let case = test_case.case();
        let position = case.replay.positions();
        MemoryHistory::until(&case, position).spike(&case, requested).map(|spike| (spike.line, spike.bytes))
    }

    #[test]
    fn a_line_that_is_new_after_some_steps_is_a_spike() {
        let save = "alloc 0x12000000 5000000 clone@/m/save.py:7\nalloc 0x12600000 5000000 clone@/m/save.py:7\n";
        assert_eq!(spike(6, save, 1_000_000), Some(("clone  m/save.py:7".to_owned(), 10_000_000)));
        assert_eq!(spike(12, save, 1_000_000).map(|(_, bytes)| bytes), Some(10_000_000), "it saved before");
        assert_eq!(spike(1, save, 1_000_000), None, "one step shows nothing");
        assert_eq!(spike(6, save, 20_000_000), None, "the request is larger than what rose");
    }

    #[test]
    fn the_state_of_an_optimizer_is_no_spike() {
        let optimizer = "alloc 0x12000000 5000000 _init_group@/v/torch/optim/adam.py:3 main@/m/a.py:9\n\
                         alloc 0x12600000 5000000 _init_group@/v/torch/optim/adam.py:3 main@/m/a.py:9\n";
        assert_eq!(spike(6, optimizer, 1_000_000), None);
    }

    #[test]
    fn a_spike_is_what_its_line_held_by_all_its_stacks() {
        let save = "alloc 0x12000000 5000000 clone@/m/save.py:7 a@/m/a.py:1\n\
                    alloc 0x12600000 3000000 clone@/m/save.py:7 b@/m/a.py:2\n";
        assert_eq!(spike(6, save, 1_000_000), Some(("clone  m/save.py:7".to_owned(), 8_000_000)));
    }

    #[test]
    fn a_larger_step_is_none() {
        let larger = "alloc 0x11000000 20000000 act0@/m/a.py:2\n";
        assert_eq!(spike(6, larger, 1_000_000), None);
        assert_eq!(spike(6, "", 1_000_000), None);
    }

    #[test]
    fn a_first_rise_is_a_new_high_and_a_repeated_one_is_not() {
        let is_new_high = |lines: &str, requested| {
            let test_case = TestCase::new(&format!("segment_alloc 0x10000000 104857600\n{lines}"));
            let case = test_case.case();
            MemoryHistory::until(&case, case.replay.positions()).is_new_high(requested)
        };
        let rise = "alloc 0x10000000 1000000\nalloc 0x10100000 9000000\n";
        let step = format!("{rise}free 0x10100000\n");
        assert!(is_new_high(rise, 1));
        // What failed before, and then something was freed.
        assert!(!is_new_high(&format!("{rise}free 0x10000000\n"), 999_999));
        assert!(!is_new_high(&format!("{step}alloc 0x10100000 9000000\n"), 0));
        assert!(is_new_high(&format!("{step}alloc 0x10100000 9000000\n"), 1_000_000));
    }
}
