//! Call sites: the line that represents a stack, and its colour.
//!
//! A stack has the same colour in every view and whenever a file is opened, and the largest sites do not share one.
//! Each line prefers the colour that its text hashes to, and gets the next free one where that is used. The largest
//! lines choose first; among those of about one size the order is that of their text, so that two runs of one program,
//! in which no site has quite the same size, have the same colours.
//!
//! Each line also has a rank, its place in the stacked timeline. The lines that hold their memory longest lie at the
//! bottom. A rank never changes, so nothing moves while a session grows; later lines come on top. Neighbours in the
//! stack get colours that are easy to tell apart, also for colour-blind people, as long as there are such colours.

use std::borrow::Cow;
use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use super::best_frames::BestFrames;
use super::usage::Usage;
use query::Paint;
use query::folding::{Overrides, short_location, short_name};
use replay::index::Index;
use trace::frames::{Frame, StackId, StackRecord, StrId, Symbols};
use trace::order::SortFew;

/// The label of an allocation without a stack.
pub const NO_STACK: &str = "no stack recorded";
/// The label of an allocation whose stack was recorded, and lost with a damaged part of the file.
pub const LOST_STACK: &str = "stack lost to damage";
/// The placeholder of a name that was lost with a damaged part of the file.
const LOST_NAME: &str = "name lost";

/// The number of largest lines that share their colour with no other.
const ALONE: usize = 16;

/// Two lines are neighbours if they are adjacent among this many of the largest lines. Small lines between two large
/// ones can't be seen.
const STACKED: [usize; 3] = [60, 20, 8];

/// The line and colour of every stack of a session. It covers all devices, and is never trimmed: stacks stay.
#[derive(Debug, Default)]
pub struct Sites {
    /// By stack: an index into `lines`.
    line: Vec<u32>,
    lines: Vec<Line>,
    best: BestFrames,
    /// The numbers of lines by their text.
    numbers: FxHashMap<String, u32>,
    /// The colours that were assigned to a line of their own.
    used: [bool; Paint::SLOTS as usize],
    /// Of those, the ones that no other line shares.
    alone: [bool; Paint::SLOTS as usize],
    /// How many colours were assigned to a line of their own.
    assigned: usize,
    /// How many lines have a rank.
    ranked: u32,
}

/// The input for the names and colours of call sites.
#[derive(Clone, Copy, Debug)]
pub struct SiteInput<'a> {
    /// Strings, frames and stacks.
    pub symbols: &'a Symbols,
    /// The memory use by call site, of each device.
    pub usages: &'a [&'a Usage],
}

#[derive(Debug)]
struct Line {
    label: String,
    /// The first of its stacks.
    first: StackId,
    paint: Paint,
    /// Its place in the stack of memory, counted from below; `None` until it has allocations.
    rank: Option<u32>,
    /// Whether its colour was chosen by its size and stays.
    is_settled: bool,
}

/// The memory use of a line over all devices.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    area: f64,
    peak: f64,
    /// The number of positions of the longest trace.
    run: f64,
}

impl Use {
    /// Returns how much of the timeline the line takes, in bytes. Both its largest size and the time held count: a
    /// spike must not vanish in a long run.
    fn weight(&self) -> f64 {
        self.area / self.run.max(1.0) + self.peak
    }

    /// Returns how long the line holds its memory, in positions: its area divided by its peak.
    fn held(&self) -> f64 {
        if self.peak > 0.0 { self.area / self.peak } else { 0.0 }
    }
}

impl Index<SiteInput<'_>> for Sites {
    /// Names the new stacks, and assigns colours to lines that have allocations and had none before. Assigned colours
    /// stay; among the new lines the largest choose first.
    fn extend(&mut self, SiteInput { symbols, usages }: SiteInput<'_>) {
        self.name(symbols);
        let used_by = self.uses(usages);
        self.rank(&used_by);
        let near = self.neighbours(&used_by);
        let mut new: Vec<(u32, f64)> = (self.lines.iter().zip(&used_by).zip(0..))
            .filter(|((line, uses), _)| uses.area > 0.0 && !line.is_settled)
            .map(|((_, uses), number)| (number, uses.area))
            .collect();
        let label = |number: u32| self.lines.get(number as usize).map(|line| line.label.as_str());
        let by_size = |(a, x): &(u32, f64), (b, y): &(u32, f64)| y.total_cmp(x).then_with(|| label(*a).cmp(&label(*b)));
        new.sort_by(by_size);
        // From here on lines of about one size count as equal.
        for (rank, (_, area)) in new.iter_mut().enumerate() {
            *area = -((rank / ALONE) as f64);
        }
        new.sort_by(by_size);
        for (number, _) in new {
            self.settle(number, near.get(&number).map_or(&[], Vec::as_slice));
        }
    }

    fn bytes(&self) -> usize {
        // A label is stored twice: in its line and in the table of numbers.
        let labels: usize = self.lines.iter().map(|line| 2 * line.label.len()).sum();
        self.line.capacity() * size_of::<u32>() + self.lines.capacity() * 2 * size_of::<Line>() + labels
    }
}

impl Sites {
    /// Creates an index without stacks, whose lines are chosen by these rules.
    pub fn with(overrides: Overrides) -> Self {
        Self { best: BestFrames::with(overrides), ..Self::default() }
    }

    /// Names the stacks that have no line yet.
    fn name(&mut self, symbols: &Symbols) {
        let Self { line, lines, best, numbers, .. } = self;
        best.extend(symbols);
        for stack in (line.len() as u32..symbols.stack_count() as u32).map(StackId) {
            let text = label(symbols, best, stack);
            let next = lines.len() as u32;
            let number = *numbers.entry(text).or_insert_with_key(|text| {
                let is_named = !matches!(symbols.recorded(stack), StackRecord::Nothing | StackRecord::Lost);
                let paint = if is_named { Paint::slot(preferred_slot(text)) } else { Paint::OTHER };
                lines.push(Line { label: text.clone(), first: stack, paint, rank: None, is_settled: false });
                next
            });
            line.push(number);
        }
    }

    /// Returns the memory use of each line over all devices.
    fn uses(&self, usages: &[&Usage]) -> Vec<Use> {
        let mut uses = vec![Use::default(); self.lines.len()];
        let run = usages.iter().map(|usage| usage.positions()).max().unwrap_or(0);
        for (stack, site) in usages.iter().flat_map(|usage| usage.iter()) {
            if let Some(sum) = self.line.get(stack.0 as usize).and_then(|&line| uses.get_mut(line as usize)) {
                sum.area += site.area;
                sum.peak += site.peak_bytes as f64;
                sum.run = f64::from(run);
            }
        }
        uses
    }

    /// Ranks the lines that have allocations now and had none before, on top of the others. The first time, the lines
    /// that hold their memory longest lie at the bottom; later, those that came first.
    fn rank(&mut self, uses: &[Use]) {
        let mut new: Vec<(u32, f64)> = (self.lines.iter().zip(uses).zip(0..))
            .filter(|((line, uses), _)| uses.area > 0.0 && line.rank.is_none())
            .map(|((_, uses), number)| (number, if self.ranked == 0 { uses.held() } else { 0.0 }))
            .collect();
        new.sort_by(|(i, a), (j, b)| b.total_cmp(a).then(i.cmp(j)));
        for (number, _) in new {
            if let Some(line) = self.lines.get_mut(number as usize) {
                line.rank = Some(self.ranked);
                self.ranked += 1;
            }
        }
    }

    /// Returns the lines that lie next to each line in the stack.
    fn neighbours(&self, uses: &[Use]) -> FxHashMap<u32, Vec<u32>> {
        let mut largest: Vec<(u32, u32, f64)> = (self.lines.iter().zip(uses).zip(0..))
            .filter_map(|((line, uses), number)| Some((number, line.rank?, uses.weight())))
            .collect();
        largest.sort_few_by(|(i, _, a), (j, _, b)| b.total_cmp(a).then(i.cmp(j)));
        let mut near: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for count in STACKED {
            largest.truncate(count);
            let mut stacked = largest.clone();
            stacked.sort_few_by_key(|(_, rank, _)| *rank);
            for pair in stacked.windows(2) {
                if let [(below, ..), (above, ..)] = *pair {
                    near.entry(below).or_default().push(above);
                    near.entry(above).or_default().push(below);
                }
            }
        }
        near
    }

    /// Gives a line its colour: the first free one, from the preferred one on, that differs from those of its neighbours.
    fn settle(&mut self, number: u32, near: &[u32]) {
        let beside: Vec<Paint> = near
            .iter()
            .filter_map(|&near| self.lines.get(near as usize))
            .filter(|line| line.is_settled)
            .map(|line| line.paint)
            .collect();
        let Some(line) = self.lines.get_mut(number as usize) else { return };
        line.is_settled = true;
        if line.paint == Paint::OTHER {
            return;
        }
        // Once all colours are used, further lines share those of the smaller ones.
        let is_own = self.assigned < self.used.len();
        let taken = if is_own { self.used } else { self.alone };
        let differs = |slot: u16| !beside.iter().any(|other| other.is_near(Paint::slot(slot)));
        let wanted = line.paint.0;
        let Some(slot) = free_slot(wanted, |slot| !taken[usize::from(slot)] && differs(slot))
            .or_else(|| free_slot(wanted, |slot| !taken[usize::from(slot)]))
        else {
            return;
        };
        line.paint = Paint::slot(slot);
        if is_own {
            self.used[usize::from(slot)] = true;
            self.alone[usize::from(slot)] = self.assigned < ALONE;
            self.assigned += 1;
        }
    }

    /// Returns the place of a stack's line in the stack of memory, counted from below. Lines without allocations come last.
    pub fn rank_of(&self, stack: StackId) -> u32 {
        self.get(stack).and_then(|line| line.rank).unwrap_or(u32::MAX)
    }

    /// Returns the line that represents a stack: `forward  models/gpt.py:54`.
    pub fn label(&self, stack: StackId) -> &str {
        self.get(stack).map_or(NO_STACK, |line| &line.label)
    }

    /// Returns the colour of a stack.
    pub fn paint(&self, stack: StackId) -> Paint {
        self.get(stack).map_or(Paint::OTHER, |line| line.paint)
    }

    /// Returns the number of a stack's line, which stacks with equal lines share.
    pub fn line(&self, stack: StackId) -> u32 {
        self.line.get(stack.0 as usize).copied().unwrap_or(0)
    }

    /// Returns the first of the stacks that have a stack's line. It identifies the line.
    pub fn first(&self, stack: StackId) -> StackId {
        self.get(stack).map_or(stack, |line| line.first)
    }

    /// Returns which frame represents each stack, and which of its frames fold.
    pub fn best_frames(&self) -> &BestFrames {
        &self.best
    }

    fn get(&self, stack: StackId) -> Option<&Line> {
        self.lines.get(*self.line.get(stack.0 as usize)? as usize)
    }
}

/// Returns the first colour at or after the preferred one that is free.
fn free_slot(wanted: u16, is_free: impl Fn(u16) -> bool) -> Option<u16> {
    (0..Paint::SLOTS).map(|i| (wanted + i) % Paint::SLOTS).find(|&slot| is_free(slot))
}

/// Returns the line that represents a stack.
pub fn label(symbols: &Symbols, best: &BestFrames, stack: StackId) -> String {
    match symbols.recorded(stack) {
        StackRecord::Nothing => NO_STACK.to_owned(),
        StackRecord::Lost => LOST_STACK.to_owned(),
        StackRecord::Partly | StackRecord::Whole => {
            let frame = best.frame(symbols.stack(stack)).unwrap_or_default();
            frame_label(symbols, symbols.frame(frame))
        }
    }
}

/// Formats a frame as one line: `forward  models/gpt.py:54`.
pub fn frame_label(symbols: &Symbols, frame: Frame) -> String {
    let (name, filename) = (name_of(symbols, frame.name), symbols.text(frame.filename));
    let name = short_name(&name, &filename);
    let location = short_location(symbols, frame);
    if location.is_empty() { name.to_owned() } else { format!("{name}  {location}") }
}

/// Returns a string for display; one that was lost says so.
pub fn name_of(symbols: &Symbols, id: StrId) -> Cow<'_, str> {
    if symbols.is_lost_string(id) { LOST_NAME.into() } else { symbols.text(id) }
}

/// Returns the colour that a line prefers. It depends on the text alone, since a number depends on the file's order.
fn preferred_slot(text: &str) -> u16 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    // The high bits are the well mixed ones.
    (hasher.finish() >> 32) as u16 % Paint::SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use replay::Replayed;
    use trace::testing::stack;

    #[test]
    fn a_stack_is_labelled_by_the_innermost_line_of_user_code() {
        let torch = "linear@/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py:134";
        let own = "forward@/home/me/models/gpt.py:54";
        let backward = "torch::autograd::generated::MmBackward0::apply()@Functions.cpp";
        let cases: [(&[&str], &str); 9] = [
            (&["at::native::linear()@??", torch, own, "main@/home/me/train.py:9"], "forward  models/gpt.py:54"),
            (&["at::native::linear()@??", torch], "linear  modules/linear.py:134"),
            (&["at::detail::empty()@??", "at::_ops::mm::call()@??", backward], "MmBackward0::apply  Functions.cpp"),
            (
                &["at::detail::empty()@??", "at::_ops::empty::call()@??", "at::_ops::mm::call()@??"],
                "at::_ops::mm::call",
            ),
            (&["torch::unwind::unwind()@??", "at::native::empty()@??"], "at::native::empty"),
            (&["_PyEval_EvalFrameDefault@ceval.c:1", "_start@??"], "_PyEval_EvalFrameDefault  ceval.c:1"),
            (&["step@train.py:3"], "step  train.py:3"),
            // What a terminal would obey is text, and no part of the path.
            (&["step\x1b[2J@/m/a\u{202e}/b\nc.py:3"], "step\\u{1b}[2J  a\\u{202e}/b\\u{a}c.py:3"),
            (&[], NO_STACK),
        ];
        let mut symbols = Symbols::default();
        for (frames, want) in cases {
            let stack = stack(&mut symbols, frames);
            assert_eq!(label(&symbols, &BestFrames::build(&symbols), stack), want);
        }
    }

    /// Forty sites, each with one allocation of its own size, named by `name`.
    fn sites(names: impl Iterator<Item = String>) -> (Vec<String>, Sites) {
        let mut lines = vec!["segment_alloc 0x10000000 209715200".to_owned()];
        for (i, name) in names.enumerate() {
            lines.push(format!("alloc {} {} {name}", 0x1000_0000 + i * 2_097_152, 2_000_000 - i * 1_000));
        }
        let mut snapshot = trace::testing::snapshot(&lines.join("\n"));
        let trace = snapshot.devices.remove(0);
        let replay = replay::Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let usage = Usage::build(Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay });
        let sites = Sites::build(SiteInput { symbols: &snapshot.symbols, usages: &[&usage] });
        let labels = (0..snapshot.symbols.stack_count() as u32).map(|i| sites.label(StackId(i)).to_owned()).collect();
        (labels, sites)
    }

    #[test]
    fn the_largest_sites_have_colors_of_their_own() {
        let name = |i: usize| format!("layer{i}@/m/model.py:{i}");
        let (labels, first) = sites((0..40).map(name));
        assert_eq!(labels.len(), 41);
        assert_eq!(first.paint(StackId(0)), Paint::OTHER);
        let mut paints: Vec<u16> = (1..=Paint::SLOTS.into()).map(|i| first.paint(StackId(i)).0).collect();
        paints.sort_unstable();
        assert_eq!(paints, (0..Paint::SLOTS).collect::<Vec<_>>());
        // The small ones share a colour, but not with the largest.
        for i in 33..=40 {
            assert!((1..=ALONE as u32).all(|large| first.paint(StackId(large)) != first.paint(StackId(i))));
        }
        let (_, again) = sites((0..40).map(name));
        assert!((0..=40).all(|i| first.paint(StackId(i)) == again.paint(StackId(i))));
    }

    #[test]
    fn two_runs_of_a_program_have_equal_colors() {
        let name = |i: usize| format!("layer{i}@/m/model.py:{i}");
        let (first, one) = sites((0..ALONE).map(name));
        let (second, other) = sites((0..ALONE).rev().map(name));
        for (label, stack) in first.iter().zip(0..) {
            let same = second.iter().position(|other| other == label).unwrap();
            assert_eq!(one.paint(StackId(stack)), other.paint(StackId(same as u32)), "{label}");
        }
    }

    #[test]
    fn neighbours_in_the_stack_have_colors_that_differ() {
        for round in 0..20 {
            let (_, sites) = sites((0..ALONE).map(|i| format!("layer{i}@/m/{round}.py:{i}")));
            let mut stacked: Vec<(u32, Paint)> =
                (1..=ALONE as u32).map(StackId).map(|stack| (sites.rank_of(stack), sites.paint(stack))).collect();
            stacked.sort_by_key(|(rank, _)| *rank);
            assert!(stacked.iter().zip(0..).all(|((rank, _), place)| *rank == place), "{stacked:?}");
            for pair in stacked.windows(2) {
                assert!(!pair[0].1.is_near(pair[1].1), "{round}: {stacked:?}");
            }
        }
    }

    #[test]
    fn ranks_stay_and_later_lines_come_on_top() {
        let lines = [
            "alloc 0x10000000 1000 a@/m/a.py:1",
            "alloc 0x10001000 1000 b@/m/b.py:1",
            "alloc 0x10002000 90000 c@/m/c.py:1",
        ];
        let mut sites = Sites::default();
        let mut ranks = |count: usize| {
            let snapshot_lines = [&["segment_alloc 0x10000000 209715200"][..], &lines[..count]].concat();
            let mut snapshot = trace::testing::snapshot(&snapshot_lines.join("\n"));
            let trace = snapshot.devices.remove(0);
            let replay = replay::Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
            let usage = Usage::build(Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay });
            sites.extend(SiteInput { symbols: &snapshot.symbols, usages: &[&usage] });
            (1..=count as u32).map(|stack| sites.rank_of(StackId(stack))).collect::<Vec<_>>()
        };
        assert_eq!((ranks(1), ranks(2), ranks(3)), (vec![0], vec![0, 1], vec![0, 1, 2]));
    }

    #[test]
    fn stacks_with_equal_lines_share_a_color() {
        let (labels, sites) =
            sites(["a@/m/x.py:1 b@/m/y.py:2".to_owned(), "a@/m/x.py:1 c@/m/y.py:3".to_owned()].into_iter());
        assert_eq!(labels[1], labels[2]);
        assert_eq!(sites.paint(StackId(1)), sites.paint(StackId(2)));
        assert_eq!(sites.line(StackId(1)), sites.line(StackId(2)));
        assert_eq!((sites.first(StackId(2)), sites.first(StackId(9))), (StackId(1), StackId(9)));
    }
}
