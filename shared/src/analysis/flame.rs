//! Active memory as a tree of frames, laid out in boxes: from the outermost frame, or from the innermost one.
//!
//! The tree itself is never built. Level by level, each box passes its stacks to the boxes below; a box narrower than a
//! pixel passes none. The work is therefore proportional to the pixels, and a stack of 65,536 frames needs no
//! recursion.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::folding::{names_text, short_location};
use super::paint::category_paint;
use super::site::{NO_STACK, Sites};
use crate::category::Category;
use crate::frames::{FrameId, StackId, Symbols};
use crate::query::{FlameBox, Paint, Quads};
use crate::units::counted;

/// The active memory of one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The stack.
    pub stack: StackId,
    /// Requested bytes.
    pub bytes: u64,
    /// Number of allocations.
    pub count: u32,
    /// Whether the search matches any of its allocations.
    pub is_lit: bool,
    /// The category of its allocations, if the first level are categories.
    pub category: Option<Category>,
}

/// How boxes are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// Whether the innermost frame comes first, rather than the outermost.
    pub bottom_up: bool,
    /// Whether runs of library frames are one box each.
    pub folds: bool,
    /// Frame numbers of the boxes that were zoomed into, from the root on.
    pub zoom: &'a [u32],
    /// Width of the view in pixels.
    pub width: f32,
    /// Why there are allocations without a stack, in a few words.
    pub no_stack: &'a str,
}

/// Returns the boxes of a flame graph: root first, by depth and then from left to right. Children are never wider than
/// their parent together; those that are too narrow are summed into one box beside their siblings.
pub fn boxes(symbols: &Symbols, sites: &Sites, leaves: &[Leaf], shape: Shape<'_>) -> Vec<FlameBox> {
    let shown = |leaf: &Leaf| sites.best_frames().index(symbols.stack(leaf.stack)).unwrap_or(0);
    let shown = leaves.iter().map(shown).collect();
    Layout { symbols, sites, leaves, shape, shown }.boxes()
}

/// What a box represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Frame(FrameId),
    /// A run of library frames, by the number of the library that the frame above it called.
    Folded(u32),
    /// Allocations without a stack.
    NoStack,
    /// The allocations of a category: the first level.
    Category(Category),
}

impl Key {
    /// Returns what a number of a zoom path represents.
    fn of(number: u32) -> Self {
        let category = number.checked_sub(FlameBox::CATEGORY).and_then(|i| Category::ALL.get(i as usize));
        if let Some(category) = category {
            return Self::Category(*category);
        }
        match number.checked_sub(FlameBox::FOLDED) {
            Some(library) => Self::Folded(library),
            None => Self::Frame(FrameId(number)),
        }
    }
}

/// A leaf below a box.
#[derive(Clone, Copy, Debug)]
struct Below {
    /// Its index.
    leaf: usize,
    /// The number of its frames above the box.
    from: usize,
    /// The number of its frames above the boxes below the box.
    at: usize,
    /// The end of the run of library frames that is open, by the number of frames above it.
    open_until: usize,
    /// Whether the box of its category is above, if it needs one.
    is_sorted: bool,
}

/// A box whose children are not laid out yet.
struct Open {
    depth: u32,
    /// Bytes to the left of it.
    left: u64,
    /// The leaves below it.
    leaves: Vec<Below>,
}

/// The sums of a child.
#[derive(Default)]
struct Sum {
    bytes: u64,
    count: u32,
    is_lit: bool,
    leaves: Vec<Below>,
}

impl Sum {
    fn add(&mut self, leaf: &Leaf) {
        self.bytes = self.bytes.saturating_add(leaf.bytes);
        self.count = self.count.saturating_add(leaf.count);
        self.is_lit |= leaf.is_lit;
    }
}

struct Layout<'a> {
    symbols: &'a Symbols,
    sites: &'a Sites,
    leaves: &'a [Leaf],
    shape: Shape<'a>,
    /// By leaf: the index of the frame that represents its stack, and is never folded.
    shown: Vec<usize>,
}

impl Layout<'_> {
    fn boxes(self) -> Vec<FlameBox> {
        let mut root = Sum::default();
        for leaf in self.leaves {
            root.add(leaf);
        }
        let below = |leaf: usize| {
            let is_sorted = self.leaves.get(leaf).is_none_or(|leaf| leaf.category.is_none());
            Below { leaf, from: 0, at: 0, open_until: 0, is_sorted }
        };
        root.leaves = (0..self.leaves.len()).map(below).collect();
        let mut boxes = vec![self.plain_box("all live memory".to_owned(), 0, (0.0, 1.0), &root)];
        let mut depth = 0;
        for (i, &number) in self.shape.zoom.iter().enumerate() {
            depth += 1;
            let key = Key::of(number);
            root = self.children(&root.leaves).remove(&key).unwrap_or_default();
            boxes.push(self.key_box(key, depth, (0.0, 1.0), &root));
            // A folded run that was zoomed into is open, unless the path goes on behind it.
            let next = self.shape.zoom.get(i + 1).map(|&number| Key::of(number));
            let is_passed = next.is_some_and(|next| self.children(&root.leaves).contains_key(&next));
            if matches!(key, Key::Folded(_)) && !is_passed {
                for below in &mut root.leaves {
                    (below.open_until, below.at) = (below.at, below.from);
                }
            }
        }
        let total = root.bytes;
        if total == 0 {
            return boxes;
        }
        let share = |bytes: u64| (bytes as f64 / total as f64) as f32;
        // A view without a width yet gets the boxes for one pixel.
        let pixel = total as f64 / f64::from(self.shape.width.max(1.0));
        let mut open = VecDeque::from([Open { depth, left: 0, leaves: root.leaves }]);
        while let Some(parent) = open.pop_front() {
            let depth = parent.depth + 1;
            let mut left = parent.left;
            let mut small = Sum::default();
            let mut smaller = 0;
            for (key, sum) in self.sorted_children(&parent.leaves) {
                if (sum.bytes as f64) < pixel {
                    smaller += 1;
                    small.bytes = small.bytes.saturating_add(sum.bytes);
                    small.count = small.count.saturating_add(sum.count);
                    small.is_lit |= sum.is_lit;
                    continue;
                }
                let right = left.saturating_add(sum.bytes);
                boxes.push(self.key_box(key, depth, (share(left), share(right)), &sum));
                if key != Key::NoStack {
                    open.push_back(Open { depth, left, leaves: sum.leaves });
                }
                left = right;
            }
            if small.bytes > 0 {
                let x = (share(left), share(left.saturating_add(small.bytes)));
                boxes.push(self.plain_box(format!("{smaller} smaller"), depth, x, &small));
            }
        }
        boxes
    }

    /// Returns the children of a box with these leaves. A leaf that ends at the box is in none.
    fn children(&self, leaves: &[Below]) -> FxHashMap<Key, Sum> {
        let mut children: FxHashMap<Key, Sum> = FxHashMap::default();
        for &below in leaves {
            let Some(leaf) = self.leaves.get(below.leaf) else { continue };
            let (key, next) = match self.next(leaf.stack, below) {
                _ if !below.is_sorted => {
                    (Key::Category(leaf.category.unwrap_or_default()), Below { is_sorted: true, ..below })
                }
                Some(next) => next,
                None if leaf.stack.0 == 0 && below.at == 0 => (Key::NoStack, below),
                None => continue,
            };
            let child = children.entry(key).or_default();
            child.add(leaf);
            child.leaves.push(next);
        }
        children
    }

    /// Returns the children, the largest first; equal ones by name, so that a picture does not depend on the file's
    /// order.
    fn sorted_children(&self, leaves: &[Below]) -> Vec<(Key, Sum)> {
        let mut children: Vec<(Key, Sum)> = self.children(leaves).into_iter().collect();
        let name = |key: &Key| match key {
            Key::Frame(id) => {
                let frame = self.symbols.frame(*id);
                (self.symbols.bytes(frame.name), self.symbols.bytes(frame.filename), frame.line, id.0)
            }
            Key::Folded(library) => (self.sites.best_frames().library_name(*library).as_bytes(), &[][..], 0, *library),
            Key::NoStack => (&[][..], &[][..], 0, 0),
            Key::Category(category) => (category.name().as_bytes(), &[][..], 0, 0),
        };
        children.sort_by(|(a, x), (b, y)| y.bytes.cmp(&x.bytes).then_with(|| name(a).cmp(&name(b))));
        children
    }

    /// Returns what is below a box in one of its leaves: the next frame, or a folded run. Runs in which a program
    /// starts are omitted, and so are those at the inner end if the call site comes first.
    fn next(&self, stack: StackId, below: Below) -> Option<(Key, Below)> {
        let frames = self.symbols.stack(stack);
        let best = self.sites.best_frames();
        let index = |at: usize| if self.shape.bottom_up { Some(at) } else { frames.len().checked_sub(at + 1) };
        let frame = |at: usize| index(at).and_then(|i| frames.get(i).map(|id| (i, *id)));
        let is_shown = |at: usize| {
            let is_own = |(i, id)| best.is_own(id) || self.shown.get(below.leaf) == Some(&i);
            frame(at).is_none_or(is_own)
        };
        let from = below.at;
        let (_, first) = frame(from)?;
        if !self.shape.folds || from < below.open_until || is_shown(from) {
            return Some((Key::Frame(first), Below { from, at: from + 1, ..below }));
        }
        let mut end = from;
        while !is_shown(end) {
            end += 1;
        }
        if from == 0 {
            return self.next(stack, Below { at: end, ..below });
        }
        if self.shape.bottom_up && end >= frames.len() {
            return None;
        }
        // The frame next to the outer end was called by the frames around the run.
        let (_, outermost) = if self.shape.bottom_up { frame(end - 1)? } else { (from, first) };
        Some((Key::Folded(best.library(outermost)), Below { from, at: end, ..below }))
    }

    fn key_box(&self, key: Key, depth: u32, x: (f32, f32), sum: &Sum) -> FlameBox {
        let (name, location, number) = match key {
            Key::Frame(id) => {
                let frame = self.symbols.frame(id);
                (self.symbols.text(frame.name).into_owned(), short_location(self.symbols, frame), id.0)
            }
            Key::Folded(library) => (self.folded_name(sum), String::new(), FlameBox::FOLDED + library),
            Key::Category(category) => {
                let number = FlameBox::CATEGORY + category as u32;
                let plain = self.plain_box(category.name().to_owned(), depth, x, sum);
                return FlameBox { frame: number, paint: dimmed(category_paint(category), sum), ..plain };
            }
            Key::NoStack => {
                let location = self.shape.no_stack.to_owned();
                return FlameBox { location, ..self.plain_box(NO_STACK.to_owned(), depth, x, sum) };
            }
        };
        let stacks = || sum.leaves.iter().filter_map(|below| self.leaves.get(below.leaf)).map(|leaf| leaf.stack);
        // A box of one call site has that site's colour; a box that several share has its own.
        let mut lines = stacks().map(|stack| self.sites.line(stack));
        let first = lines.next();
        let paint = match stacks().next() {
            Some(stack) if lines.all(|line| Some(line) == first) => self.sites.paint(stack),
            // With several call sites above, a site's colour would be misleading.
            _ => Paint::OTHER,
        };
        FlameBox {
            name,
            location,
            frame: number,
            stack: if sum.leaves.len() == 1 { stacks().next().map(|stack| stack.0) } else { None },
            paint: dimmed(paint, sum),
            ..self.plain_box(String::new(), depth, x, sum)
        }
    }

    /// Names a box of folded runs: `3 frames of torch`, or `3 to 5 frames of torch and einops` if they differ.
    fn folded_name(&self, sum: &Sum) -> String {
        let best = self.sites.best_frames();
        let runs = || sum.leaves.iter().map(|below| (below.leaf, below.from, below.at.max(below.open_until)));
        let lengths = || runs().map(|(_, from, to)| to.saturating_sub(from));
        let (least, most) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
        let frames = counted(most as u64, "frame");
        let frames = if least == most { frames } else { format!("{least} to {frames}") };
        let libraries = runs().flat_map(|(leaf, from, to)| {
            let stack = self.leaves.get(leaf).map_or(&[][..], |leaf| self.symbols.stack(leaf.stack));
            let range = if self.shape.bottom_up {
                from..to
            } else {
                stack.len().saturating_sub(to)..stack.len().saturating_sub(from)
            };
            // The outermost frame names the library that was called.
            stack.get(range).unwrap_or_default().iter().rev().map(|id| best.library_name(best.library(*id)))
        });
        names_text(&frames, libraries)
    }

    /// Returns a box that represents no frame.
    fn plain_box(&self, name: String, depth: u32, x: (f32, f32), sum: &Sum) -> FlameBox {
        FlameBox {
            depth,
            x0: x.0,
            x1: x.1,
            name,
            location: String::new(),
            frame: Quads::NONE,
            bytes: sum.bytes,
            count: sum.count,
            stack: None,
            paint: dimmed(Paint::OTHER, sum),
        }
    }
}

fn dimmed(paint: Paint, sum: &Sum) -> Paint {
    if sum.is_lit { paint } else { paint.with(Paint::DIM) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::site::SiteInput;
    use crate::index::Index;
    use crate::testing::stack;

    const WIDE: Shape<'_> = Shape { bottom_up: false, folds: false, zoom: &[], width: 1_000.0, no_stack: "" };

    /// Lays out `(frames, bytes)`, and formats each box as a line: depth, name, bytes, from and to in pixels.
    fn check(leaves: &[(&[&str], u64)], shape: Shape<'_>, want: &[&str]) {
        let mut symbols = Symbols::default();
        let leaves: Vec<Leaf> = leaves
            .iter()
            .map(|(frames, bytes)| Leaf {
                stack: stack(&mut symbols, frames),
                bytes: *bytes,
                count: 1,
                is_lit: true,
                category: None,
            })
            .collect();
        let sites = Sites::build(SiteInput { symbols: &symbols, usages: &[] });
        let got: Vec<String> = boxes(&symbols, &sites, &leaves, shape)
            .iter()
            .map(|b| {
                let pixel = |x: f32| (x * shape.width).round();
                format!("{} {} {} {}-{}", b.depth, b.name, b.bytes, pixel(b.x0), pixel(b.x1))
            })
            .collect();
        assert_eq!(got, want);
    }

    const TREE: [(&[&str], u64); 4] = [
        (&["relu@m.py:1", "forward@m.py:2", "main@t.py:1"], 300),
        (&["linear@m.py:5", "forward@m.py:2", "main@t.py:1"], 500),
        (&["step@o.py:1", "main@t.py:1"], 150),
        (&[], 50),
    ];

    #[test]
    fn top_down_begins_with_the_outermost_frame() {
        let want = [
            "0 all live memory 1000 0-1000",
            "1 main 950 0-950",
            "1 no stack recorded 50 950-1000",
            "2 forward 800 0-800",
            "2 step 150 800-950",
            "3 linear 500 0-500",
            "3 relu 300 500-800",
        ];
        check(&TREE, WIDE, &want);
    }

    #[test]
    fn bottom_up_begins_with_the_innermost_frame() {
        let want = [
            "0 all live memory 1000 0-1000",
            "1 linear 500 0-500",
            "1 relu 300 500-800",
            "1 step 150 800-950",
            "1 no stack recorded 50 950-1000",
            "2 forward 500 0-500",
            "2 forward 300 500-800",
            "2 main 150 800-950",
            "3 main 500 0-500",
            "3 main 300 500-800",
        ];
        check(&TREE, Shape { bottom_up: true, ..WIDE }, &want);
    }

    #[test]
    fn boxes_narrower_than_a_pixel_are_summed() {
        let want = [
            "0 all live memory 1000 0-4",
            "1 main 950 0-4",
            "1 1 smaller 50 4-4",
            "2 forward 800 0-3",
            "2 1 smaller 150 3-4",
            "3 linear 500 0-2",
            "3 relu 300 2-3",
        ];
        check(&TREE, Shape { width: 4.0, ..WIDE }, &want);
    }

    #[test]
    fn a_zoomed_box_takes_the_whole_width() {
        // Frames are numbered in the order in which they are first seen: relu, forward, main, linear, step.
        let want = [
            "0 all live memory 1000 0-1000",
            "1 main 950 0-1000",
            "2 forward 800 0-1000",
            "3 linear 500 0-625",
            "3 relu 300 625-1000",
        ];
        check(&TREE, Shape { zoom: &[2, 1], ..WIDE }, &want);
        let gone = ["0 all live memory 1000 0-1000", "1 step 0 0-1000"];
        check(&TREE, Shape { zoom: &[4], ..WIDE }, &gone);
    }

    const FOLDED: Shape<'_> = Shape { folds: true, ..WIDE };
    const LIBRARIES: [(&[&str], u64); 3] = [
        (
            &[
                "torch::unwind::unwind()@??",
                "relu@/x/site-packages/torch/nn/functional.py:9",
                "forward@m.py:1",
                "_call_impl@/x/site-packages/torch/nn/modules/module.py:1",
                "main@t.py:1",
                "_start@??",
            ],
            70,
        ),
        (
            &[
                "gelu@/x/site-packages/torch/nn/functional.py:7",
                "forward@m.py:1",
                "_call_impl@/x/site-packages/torch/nn/modules/module.py:1",
                "_wrapped_call_impl@/x/site-packages/torch/nn/modules/module.py:2",
                "main@t.py:1",
            ],
            20,
        ),
        (&["torch::unwind::unwind()@??", "torch::autograd::generated::AddBackward0::apply()@??", "_start@??"], 10),
    ];

    #[test]
    fn a_run_of_library_frames_is_one_box() {
        let want = [
            "0 all live memory 100 0-1000",
            "1 main 90 0-900",
            "1 torch::autograd::generated::AddBackward0::apply() 10 900-1000",
            "2 1 to 2 frames of torch 90 0-900",
            "2 1 frame of torch 10 900-1000",
            "3 forward 90 0-900",
            "4 1 to 2 frames of torch 90 0-900",
        ];
        check(&LIBRARIES, FOLDED, &want);
        // The call site comes first.
        let want = [
            "0 all live memory 100 0-1000",
            "1 forward 90 0-900",
            "1 torch::autograd::generated::AddBackward0::apply() 10 900-1000",
            "2 1 to 2 frames of torch 90 0-900",
            "3 main 90 0-900",
        ];
        check(&LIBRARIES, Shape { bottom_up: true, ..FOLDED }, &want);
    }

    #[test]
    fn a_folded_run_opens_when_it_is_zoomed_into() {
        let mut symbols = Symbols::default();
        LIBRARIES.iter().for_each(|(frames, _)| {
            stack(&mut symbols, frames);
        });
        let sites = Sites::build(SiteInput { symbols: &symbols, usages: &[] });
        let frame = |index: usize| symbols.stack(StackId(1)).get(index).expect("a frame").0;
        let torch = FlameBox::FOLDED + sites.best_frames().library(FrameId(frame(3)));
        let (main, forward) = (frame(4), frame(2));
        let open = [
            "0 all live memory 100 0-1000",
            "1 main 90 0-1000",
            "2 1 to 2 frames of torch 90 0-1000",
            "3 _call_impl 70 0-778",
            "3 _wrapped_call_impl 20 778-1000",
            "4 forward 70 0-778",
            "4 _call_impl 20 778-1000",
            "5 2 frames of torch 70 0-778",
            "5 forward 20 778-1000",
            "6 1 frame of torch 20 778-1000",
        ];
        check(&LIBRARIES, Shape { zoom: &[main, torch], ..FOLDED }, &open);
        // The run stays folded if a box behind it was zoomed into.
        let passed = [
            "0 all live memory 100 0-1000",
            "1 main 90 0-1000",
            "2 1 to 2 frames of torch 90 0-1000",
            "3 forward 90 0-1000",
            "4 1 to 2 frames of torch 90 0-1000",
        ];
        check(&LIBRARIES, Shape { zoom: &[main, torch, forward], ..FOLDED }, &passed);
    }

    #[test]
    fn the_deepest_stack_and_the_emptiest_state_are_laid_out() {
        check(&[], WIDE, &["0 all live memory 0 0-1000"]);
        let mut symbols = Symbols::default();
        let names: Vec<String> = (0..65_536).map(|i| format!("f{i}@m.py:{i}")).collect();
        let frames: Vec<&str> = names.iter().map(String::as_str).collect();
        let leaf = Leaf { stack: stack(&mut symbols, &frames), bytes: 1, count: 1, is_lit: true, category: None };
        assert_eq!(boxes(&symbols, &Sites::default(), &[leaf], WIDE).len(), 65_537);
    }
}
