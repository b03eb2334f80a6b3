//! Call sites: the line that represents a stack, and its colour.
//!
//! A stack has the same colour in every view and whenever a file is opened, and the largest sites do not share one.
//! Each line prefers the colour that its text hashes to, and gets the next free one where that is used. The largest
//! lines choose first; among those of about one size the order is that of their text, so that two runs of one program,
//! in which no site has quite the same size, have the same colours.

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use super::folding::{BestFrames, Overrides, short_location, short_name};
use super::usage::Usage;
use crate::frames::{Frame, StackId, Symbols};
use crate::index::Index;
use crate::query::Paint;

/// The label of an allocation without a stack.
pub const NO_STACK: &str = "no stack recorded";

/// The number of largest lines that share their colour with no other.
const ALONE: usize = 16;

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
}

/// What call sites are named and coloured by.
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
    /// Whether its colour was chosen by its size and stays.
    is_settled: bool,
}

impl Index<SiteInput<'_>> for Sites {
    /// Names the new stacks, and assigns colours to lines that have allocations and had none before. Assigned colours
    /// stay; among the new lines the largest choose first.
    fn extend(&mut self, SiteInput { symbols, usages }: SiteInput<'_>) {
        self.name(symbols);
        let area = self.area(usages);
        let Self { lines, used, alone, assigned, .. } = self;
        let mut new: Vec<(&mut Line, f64)> =
            (lines.iter_mut().zip(area)).filter(|(line, area)| *area > 0.0 && !line.is_settled).collect();
        let by_size =
            |(a, x): &(&mut Line, f64), (b, y): &(&mut Line, f64)| y.total_cmp(x).then_with(|| a.label.cmp(&b.label));
        new.sort_by(by_size);
        // From here on lines of about one size count as equal.
        for (rank, (_, area)) in new.iter_mut().enumerate() {
            *area = -((rank / ALONE) as f64);
        }
        new.sort_by(by_size);
        for (line, _) in new {
            line.is_settled = true;
            // Once all colours are used, further lines share those of the smaller ones.
            let is_own = *assigned < used.len();
            let Some(slot) = free_slot(line.paint.0, if is_own { used } else { alone }) else { continue };
            line.paint = Paint::slot(slot);
            if is_own {
                used[usize::from(slot)] = true;
                alone[usize::from(slot)] = *assigned < ALONE;
                *assigned += 1;
            }
        }
    }

    fn bytes(&self) -> usize {
        // A label stands in its line and in the table of numbers.
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
                let paint = if stack.0 == 0 { Paint::OTHER } else { Paint::slot(preferred_slot(text)) };
                lines.push(Line { label: text.clone(), first: stack, paint, is_settled: false });
                next
            });
            line.push(number);
        }
    }

    /// Returns the area of each line over all devices.
    fn area(&self, usages: &[&Usage]) -> Vec<f64> {
        let mut area = vec![0.0; self.lines.len()];
        for (stack, site) in usages.iter().flat_map(|usage| usage.iter()).filter(|(stack, _)| stack.0 != 0) {
            if let Some(sum) = self.line.get(stack.0 as usize).and_then(|&line| area.get_mut(line as usize)) {
                *sum += site.area;
            }
        }
        area
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

/// Returns the first unused colour at or after the preferred one.
fn free_slot(wanted: u16, used: &[bool; Paint::SLOTS as usize]) -> Option<u16> {
    let mut slots = (0..Paint::SLOTS).map(|i| (wanted + i) % Paint::SLOTS);
    slots.find(|&slot| !used[usize::from(slot)])
}

/// Returns the line that represents a stack.
pub fn label(symbols: &Symbols, best: &BestFrames, stack: StackId) -> String {
    match best.frame(symbols.stack(stack)) {
        Some(id) => frame_label(symbols, symbols.frame(id)),
        None => NO_STACK.to_owned(),
    }
}

/// Formats a frame as one line: `forward  models/gpt.py:54`.
pub fn frame_label(symbols: &Symbols, frame: Frame) -> String {
    let (name, filename) = (symbols.text(frame.name), symbols.text(frame.filename));
    let name = short_name(&name, &filename);
    let location = short_location(symbols, frame);
    if location.is_empty() { name.to_owned() } else { format!("{name}  {location}") }
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
    use crate::replay::Replayed;
    use crate::testing::stack;

    #[test]
    fn a_stack_is_labelled_by_the_innermost_line_of_user_code() {
        let torch = "linear@/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py:134";
        let own = "forward@/home/me/models/gpt.py:54";
        let backward = "torch::autograd::generated::MmBackward0::apply()@Functions.cpp";
        let cases: [(&[&str], &str); 8] = [
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
        let mut snapshot = crate::testing::snapshot(&lines.join("\n"));
        let trace = snapshot.devices.remove(0);
        let replay = crate::replay::Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
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
    fn stacks_with_equal_lines_share_a_color() {
        let (labels, sites) =
            sites(["a@/m/x.py:1 b@/m/y.py:2".to_owned(), "a@/m/x.py:1 c@/m/y.py:3".to_owned()].into_iter());
        assert_eq!(labels[1], labels[2]);
        assert_eq!(sites.paint(StackId(1)), sites.paint(StackId(2)));
        assert_eq!(sites.line(StackId(1)), sites.line(StackId(2)));
        assert_eq!((sites.first(StackId(2)), sites.first(StackId(9))), (StackId(1), StackId(9)));
    }
}
