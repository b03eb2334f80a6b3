//! Call sites: the line that stands for a stack, and its colour.
//!
//! A stack's colour must be the same in every view and whenever the same file is opened, and the sites that take the
//! most room must not share one. So each line asks for the colour that its text hashes to, and moves on to the next free
//! one where that is taken. The largest take theirs first; but among them it is their text that decides who comes before
//! whom, so that two runs of one program, in which nothing has quite the same size, have the same colours.

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use super::folding::{Telling, short_location, short_name};
use super::usage::Usage;
use crate::frames::{Frame, StackId, Symbols};
use crate::query::Paint;

/// What is shown for an allocation without a stack.
pub const NO_STACK: &str = "no stack recorded";

/// So many of the largest lines share their colour with no other.
const ALONE: usize = 16;

/// The line and colour of every stack of a file.
#[derive(Debug, Default)]
pub struct Sites {
    /// By stack: an index into `lines`.
    line: Vec<u32>,
    lines: Vec<Line>,
    telling: Telling,
    /// Lines by their text.
    numbers: FxHashMap<String, u32>,
    /// Colours that were given out to lines of their own.
    taken: [bool; Paint::SLOTS as usize],
    /// Of those, the ones that nobody else gets.
    alone: [bool; Paint::SLOTS as usize],
    given_out: usize,
}

#[derive(Debug)]
struct Line {
    label: String,
    paint: Paint,
    /// Whether its colour is its own for good.
    is_settled: bool,
}

impl Sites {
    /// Names all stacks, and gives out colours by what all devices used.
    pub fn build<'a>(symbols: &Symbols, usages: impl Iterator<Item = &'a Usage>) -> Self {
        let mut sites = Self::default();
        sites.extend(symbols, usages);
        sites
    }

    /// Names the stacks that came since, and gives colours to lines that hold something now and held nothing before. What
    /// has a colour keeps it: among the new ones the largest choose first.
    pub fn extend<'a>(&mut self, symbols: &Symbols, usages: impl Iterator<Item = &'a Usage>) {
        self.name(symbols);
        let area = self.area(usages);
        let Self { lines, taken, alone, given_out, .. } = self;
        let mut new: Vec<(&mut Line, f64)> =
            (lines.iter_mut().zip(area)).filter(|(line, area)| *area > 0.0 && !line.is_settled).collect();
        let by_size =
            |(a, x): &(&mut Line, f64), (b, y): &(&mut Line, f64)| y.total_cmp(x).then_with(|| a.label.cmp(&b.label));
        new.sort_by(by_size);
        // From here on all that are about as large count as one size.
        for (rank, (_, area)) in new.iter_mut().enumerate() {
            *area = -((rank / ALONE) as f64);
        }
        new.sort_by(by_size);
        for (line, _) in new {
            line.is_settled = true;
            // Once all are given out, the rest share those of the smaller ones.
            let is_own = *given_out < taken.len();
            let Some(slot) = free_slot(line.paint.0, if is_own { taken } else { alone }) else { continue };
            line.paint = Paint::slot(slot);
            if is_own {
                taken[usize::from(slot)] = true;
                alone[usize::from(slot)] = *given_out < ALONE;
                *given_out += 1;
            }
        }
    }

    /// Names the stacks that have no line yet.
    fn name(&mut self, symbols: &Symbols) {
        let Self { line, lines, telling, numbers, .. } = self;
        telling.extend(symbols);
        for stack in (line.len() as u32..symbols.stack_count() as u32).map(StackId) {
            let text = label(symbols, telling, stack);
            let next = lines.len() as u32;
            let number = *numbers.entry(text).or_insert_with_key(|text| {
                let paint = if stack.0 == 0 { Paint::OTHER } else { Paint::slot(preferred_slot(text)) };
                lines.push(Line { label: text.clone(), paint, is_settled: false });
                next
            });
            line.push(number);
        }
    }

    /// By line, what it held for how long, on all devices.
    fn area<'a>(&self, usages: impl Iterator<Item = &'a Usage>) -> Vec<f64> {
        let mut area = vec![0.0; self.lines.len()];
        for (stack, site) in usages.flat_map(Usage::iter).filter(|(stack, _)| stack.0 != 0) {
            if let Some(sum) = self.line.get(stack.0 as usize).and_then(|&line| area.get_mut(line as usize)) {
                *sum += site.area;
            }
        }
        area
    }

    /// The line that stands for a stack: `forward  models/gpt.py:54`.
    pub fn label(&self, stack: StackId) -> &str {
        self.get(stack).map_or(NO_STACK, |line| &line.label)
    }

    /// The colour of a stack.
    pub fn paint(&self, stack: StackId) -> Paint {
        self.get(stack).map_or(Paint::OTHER, |line| line.paint)
    }

    /// A number that stacks with the same line share.
    pub fn line(&self, stack: StackId) -> u32 {
        self.line.get(stack.0 as usize).copied().unwrap_or(0)
    }

    fn get(&self, stack: StackId) -> Option<&Line> {
        self.lines.get(*self.line.get(stack.0 as usize)? as usize)
    }
}

/// The first colour from the one that is wanted on that is not taken.
fn free_slot(wanted: u16, taken: &[bool; Paint::SLOTS as usize]) -> Option<u16> {
    let mut slots = (0..Paint::SLOTS).map(|i| (wanted + i) % Paint::SLOTS);
    slots.find(|&slot| !taken[usize::from(slot)])
}

/// The line that stands for a stack.
pub fn label(symbols: &Symbols, telling: &Telling, stack: StackId) -> String {
    match telling.frame(symbols.stack(stack)) {
        Some(id) => frame_label(symbols, symbols.frame(id)),
        None => NO_STACK.to_owned(),
    }
}

/// A frame in one line: `forward  models/gpt.py:54`.
pub fn frame_label(symbols: &Symbols, frame: Frame) -> String {
    let (name, filename) = (symbols.text(frame.name), symbols.text(frame.filename));
    let name = short_name(&name, &filename);
    let location = short_location(symbols, frame);
    if location.is_empty() { name.to_owned() } else { format!("{name}  {location}") }
}

/// The colour that a line's text asks for. By its text and not by its number, which depends on the file's order.
fn preferred_slot(text: &str) -> u16 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    // The high bits are the well mixed ones.
    (hasher.finish() >> 32) as u16 % Paint::SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stack;

    #[test]
    fn a_stack_is_told_by_the_innermost_line_of_the_users_own() {
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
            assert_eq!(label(&symbols, &Telling::new(&symbols), stack), want);
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
        let usage = Usage::build(&trace, &replay);
        let sites = Sites::build(&snapshot.symbols, std::iter::once(&usage));
        let labels = (0..snapshot.symbols.stack_count() as u32).map(|i| sites.label(StackId(i)).to_owned()).collect();
        (labels, sites)
    }

    #[test]
    fn the_largest_sites_have_colors_of_their_own_and_keep_them() {
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
    fn the_same_program_has_the_same_colors_whatever_is_largest_in_a_run() {
        let name = |i: usize| format!("layer{i}@/m/model.py:{i}");
        let (first, one) = sites((0..ALONE).map(name));
        let (second, other) = sites((0..ALONE).rev().map(name));
        for (label, stack) in first.iter().zip(0..) {
            let same = second.iter().position(|other| other == label).unwrap();
            assert_eq!(one.paint(StackId(stack)), other.paint(StackId(same as u32)), "{label}");
        }
    }

    #[test]
    fn stacks_that_differ_below_their_line_share_its_color() {
        let (labels, sites) =
            sites(["a@/m/x.py:1 b@/m/y.py:2".to_owned(), "a@/m/x.py:1 c@/m/y.py:3".to_owned()].into_iter());
        assert_eq!(labels[1], labels[2]);
        assert_eq!(sites.paint(StackId(1)), sites.paint(StackId(2)));
        assert_eq!(sites.line(StackId(1)), sites.line(StackId(2)));
    }
}
