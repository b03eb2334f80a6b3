//! Call sites: the line that represents a stack, and its colour.
//!
//! The colour follows from the line's text alone, so a line has one colour in every view, file, run and what-if. Two lines
//! may share a colour for that: it would depend on the file which of them had to give way.
//!
//! Each line also has a rank, its place in the stacked timeline. The lines that hold their memory longest lie at the
//! bottom. A rank never changes, so nothing moves while a session grows; later lines come on top.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::best_frames::BestFrames;
use super::usage::Usage;
use query::folding::{Overrides, short_location, short_name};
use query::{LOST_STACK, NO_STACK, Paint};
use replay::index::Index;
use trace::frames::{Frame, StackId, StackRecord, StrId, Symbols};

/// The placeholder of a name that was lost with a damaged part of the file.
const LOST_NAME: &str = "name lost";

/// The line and colour of every stack of a session. It covers all devices, and is never trimmed: stacks stay.
#[derive(Debug, Default)]
pub struct Sites {
    /// By stack: an index into `lines`.
    line: Vec<u32>,
    lines: Vec<Line>,
    best: BestFrames,
    /// The numbers of lines by their text.
    numbers: FxHashMap<String, u32>,
    /// How many lines have a rank.
    ranked: u32,
}

/// The input for the names and ranks of call sites.
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
}

/// The memory use of a line over all devices.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    area: f64,
    peak: f64,
}

impl Use {
    /// Returns how long the line holds its memory, in positions: its area divided by its peak.
    fn held(&self) -> f64 {
        if self.peak > 0.0 { self.area / self.peak } else { 0.0 }
    }
}

impl Index<SiteInput<'_>> for Sites {
    /// Names the new stacks, and ranks the lines that have allocations and had none before.
    fn extend(&mut self, SiteInput { symbols, usages }: SiteInput<'_>) {
        self.name(symbols);
        let uses = self.uses(usages);
        self.rank(&uses);
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
                let paint = Paint::line(text);
                lines.push(Line { label: text.clone(), first: stack, paint, rank: None });
                next
            });
            line.push(number);
        }
    }

    /// Returns the memory use of each line over all devices.
    fn uses(&self, usages: &[&Usage]) -> Vec<Use> {
        let mut uses = vec![Use::default(); self.lines.len()];
        for (stack, site) in usages.iter().flat_map(|usage| usage.iter()) {
            if let Some(sum) = self.line.get(stack.0 as usize).and_then(|&line| uses.get_mut(line as usize)) {
                sum.area += site.area;
                sum.peak += site.peak_bytes as f64;
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

    /// Returns whether a stack is known. The names of a running job may have more: those of events that wait to be added.
    pub fn contains(&self, stack: StackId) -> bool {
        (stack.0 as usize) < self.line.len()
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
    fn a_line_has_one_color_whatever_else_a_file_has() {
        let name = |i: usize| format!("layer{i}@/m/model.py:{i}");
        let (labels, all) = sites((0..80).map(name));
        assert_eq!((labels.len(), all.paint(StackId(0))), (81, Paint::OTHER));
        let ways: [&dyn Fn(usize) -> Option<String>; 4] =
            [&|i| Some(name(79 - i)), &|i| (i % 2 == 0).then(|| name(i)), &|i| (i >= 70).then(|| name(i)), &|i| {
                (i == 33).then(|| name(i))
            }];
        for (way, names) in ways.iter().enumerate() {
            let (others, other) = sites((0..80).filter_map(names));
            for (label, stack) in others.iter().zip(0..) {
                let same = labels.iter().position(|known| known == label).unwrap();
                assert_eq!(other.paint(StackId(stack)), all.paint(StackId(same as u32)), "{way}: {label}");
            }
        }
    }

    #[test]
    fn lines_use_all_colors_and_those_of_one_color_are_told_apart() {
        let (labels, sites) = sites((0..240).map(|i| format!("layer{}@/m/model.py:{i}", i % 7)));
        let paints = || (1..labels.len() as u32).map(|stack| sites.paint(StackId(stack)));
        let mut uses = [0; Paint::SLOTS as usize];
        paints().for_each(|paint| uses[usize::from(paint.base().0)] += 1);
        assert!(uses.iter().all(|uses| (1..=20).contains(uses)), "{uses:?}");
        let mut own: Vec<u16> = paints().map(|paint| paint.0).collect();
        own.sort_unstable();
        own.dedup();
        assert!(own.len() >= 220, "{}", own.len());
        assert!(paints().all(|paint| paint == paint.with(Paint::DIM).with(Paint::PRIVATE).unmarked()));
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
