//! Active memory as a tree of frames, laid out in boxes: from the outermost frame, or from the innermost one.
//!
//! The tree itself is never built. Level by level, each box passes its stacks to the boxes below; a box narrower than a
//! pixel passes none. The work is therefore proportional to the pixels, and a stack of 65,536 frames needs no
//! recursion.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::folding::{is_internal, short_location};
use super::site::{NO_STACK, Sites};
use crate::frames::{FrameId, StackId, Symbols};
use crate::query::{FlameBox, Paint, Quads};

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
}

/// How boxes are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// Whether the innermost frame comes first, rather than the outermost.
    pub bottom_up: bool,
    /// Whether frames of the interpreter and the dispatcher are omitted.
    pub hide_internal: bool,
    /// Frame numbers of the boxes that were zoomed into, from the root on.
    pub zoom: &'a [u32],
    /// Width of the view in pixels.
    pub width: f32,
}

/// Returns the boxes of a flame graph: root first, by depth and then from left to right. Children are never wider than
/// their parent together; those that are too narrow are summed into one box beside their siblings.
pub fn boxes(symbols: &Symbols, sites: &Sites, leaves: &[Leaf], shape: Shape<'_>) -> Vec<FlameBox> {
    let layout = Layout { symbols, sites, leaves, shape, internal: vec![None; symbols.frame_count()] };
    layout.boxes()
}

/// What a box represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Frame(FrameId),
    /// Allocations without a stack.
    NoStack,
    /// Stacks whose frames are all omitted.
    AllHidden,
}

/// A box whose children are not laid out yet.
struct Open {
    depth: u32,
    /// Bytes to the left of it.
    left: u64,
    /// The leaves below it, each with the number of its frames above.
    leaves: Vec<(usize, usize)>,
}

/// The sums of a child.
#[derive(Default)]
struct Sum {
    bytes: u64,
    count: u32,
    is_lit: bool,
    leaves: Vec<(usize, usize)>,
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
    /// Whether each frame is omitted; `None` until it is needed.
    internal: Vec<Option<bool>>,
}

impl Layout<'_> {
    fn boxes(mut self) -> Vec<FlameBox> {
        let mut root = Sum::default();
        for leaf in self.leaves {
            root.add(leaf);
        }
        root.leaves = (0..self.leaves.len()).map(|i| (i, 0)).collect();
        let mut boxes = vec![self.plain_box("all live memory".to_owned(), 0, (0.0, 1.0), &root)];
        let mut depth = 0;
        for &frame in self.shape.zoom {
            depth += 1;
            root = self.children(root.leaves).remove(&Key::Frame(FrameId(frame))).unwrap_or_default();
            boxes.push(self.key_box(Key::Frame(FrameId(frame)), depth, (0.0, 1.0), &root));
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
            for (key, sum) in self.sorted_children(parent.leaves) {
                if (sum.bytes as f64) < pixel {
                    smaller += 1;
                    small.bytes = small.bytes.saturating_add(sum.bytes);
                    small.count = small.count.saturating_add(sum.count);
                    small.is_lit |= sum.is_lit;
                    continue;
                }
                let right = left.saturating_add(sum.bytes);
                boxes.push(self.key_box(key, depth, (share(left), share(right)), &sum));
                if matches!(key, Key::Frame(_)) {
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
    fn children(&mut self, leaves: Vec<(usize, usize)>) -> FxHashMap<Key, Sum> {
        let mut children: FxHashMap<Key, Sum> = FxHashMap::default();
        for (i, above) in leaves {
            let Some(leaf) = self.leaves.get(i) else { continue };
            let (key, next) = match self.next_frame(leaf.stack, above) {
                Some((frame, next)) => (Key::Frame(frame), next),
                None if above > 0 => continue,
                None if leaf.stack.0 == 0 => (Key::NoStack, 0),
                None => (Key::AllHidden, 0),
            };
            let child = children.entry(key).or_default();
            child.add(leaf);
            child.leaves.push((i, next));
        }
        children
    }

    /// Returns the children, the largest first; equal ones by name, so that a picture does not depend on the file's
    /// order.
    fn sorted_children(&mut self, leaves: Vec<(usize, usize)>) -> Vec<(Key, Sum)> {
        let mut children: Vec<(Key, Sum)> = self.children(leaves).into_iter().collect();
        let name = |key: &Key| match key {
            Key::Frame(id) => {
                let frame = self.symbols.frame(*id);
                (self.symbols.bytes(frame.name), self.symbols.bytes(frame.filename), frame.line, id.0)
            }
            Key::NoStack => (&[][..], &[][..], 0, 0),
            Key::AllHidden => (&[][..], &[][..], 0, 1),
        };
        children.sort_by(|(a, x), (b, y)| y.bytes.cmp(&x.bytes).then_with(|| name(a).cmp(&name(b))));
        children
    }

    /// Returns the next visible frame of a stack behind its first `above` frames, and the number of frames up to and
    /// including it.
    fn next_frame(&mut self, stack: StackId, above: usize) -> Option<(FrameId, usize)> {
        let frames = self.symbols.stack(stack);
        for at in above..frames.len() {
            let i = if self.shape.bottom_up { at } else { frames.len() - 1 - at };
            let frame = *frames.get(i)?;
            if !self.is_hidden(frame) {
                return Some((frame, at + 1));
            }
        }
        None
    }

    fn is_hidden(&mut self, id: FrameId) -> bool {
        if !self.shape.hide_internal {
            return false;
        }
        let symbols = self.symbols;
        let Some(known) = self.internal.get_mut(id.0 as usize) else { return false };
        *known.get_or_insert_with(|| {
            let frame = symbols.frame(id);
            is_internal(&symbols.text(frame.name), &symbols.text(frame.filename))
        })
    }

    fn key_box(&self, key: Key, depth: u32, x: (f32, f32), sum: &Sum) -> FlameBox {
        let id = match key {
            Key::Frame(id) => id,
            Key::NoStack => return self.plain_box(NO_STACK.to_owned(), depth, x, sum),
            Key::AllHidden => return self.plain_box("interpreter and dispatcher only".to_owned(), depth, x, sum),
        };
        let frame = self.symbols.frame(id);
        let stacks = || sum.leaves.iter().filter_map(|(i, _)| self.leaves.get(*i)).map(|leaf| leaf.stack);
        // A box of one call site has that site's colour; a box that several share has its own.
        let mut lines = stacks().map(|stack| self.sites.line(stack));
        let first = lines.next();
        let paint = match stacks().next() {
            Some(stack) if lines.all(|line| Some(line) == first) => self.sites.paint(stack),
            // With several call sites above, a site's colour would be misleading.
            _ => Paint::OTHER,
        };
        FlameBox {
            name: self.symbols.text(frame.name).into_owned(),
            location: short_location(self.symbols, frame),
            frame: id.0,
            stack: if sum.leaves.len() == 1 { stacks().next().map(|stack| stack.0) } else { None },
            paint: dimmed(paint, sum),
            ..self.plain_box(String::new(), depth, x, sum)
        }
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
    use crate::testing::stack;

    const WIDE: Shape<'_> = Shape { bottom_up: false, hide_internal: false, zoom: &[], width: 1_000.0 };

    /// Lays out `(frames, bytes)`, and formats each box as a line: depth, name, bytes, from and to in pixels.
    fn check(leaves: &[(&[&str], u64)], shape: Shape<'_>, want: &[&str]) {
        let mut symbols = Symbols::default();
        let leaves: Vec<Leaf> = leaves
            .iter()
            .map(|(frames, bytes)| Leaf { stack: stack(&mut symbols, frames), bytes: *bytes, count: 1, is_lit: true })
            .collect();
        let got: Vec<String> = boxes(&symbols, &Sites::default(), &leaves, shape)
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

    #[test]
    fn internal_frames_can_be_hidden() {
        let leaves: [(&[&str], u64); 2] = [
            (
                &["torch::unwind::unwind()@??", "f@m.py:1", "_PyEval_EvalFrameDefault@??", "main@t.py:1", "_start@??"],
                70,
            ),
            (&["torch::unwind::unwind()@??", "_start@??"], 30),
        ];
        let want = [
            "0 all live memory 100 0-1000",
            "1 main 70 0-700",
            "1 interpreter and dispatcher only 30 700-1000",
            "2 f 70 0-700",
        ];
        check(&leaves, Shape { hide_internal: true, ..WIDE }, &want);
    }

    #[test]
    fn the_deepest_stack_and_the_emptiest_state_are_laid_out() {
        check(&[], WIDE, &["0 all live memory 0 0-1000"]);
        let mut symbols = Symbols::default();
        let names: Vec<String> = (0..65_536).map(|i| format!("f{i}@m.py:{i}")).collect();
        let frames: Vec<&str> = names.iter().map(String::as_str).collect();
        let leaf = Leaf { stack: stack(&mut symbols, &frames), bytes: 1, count: 1, is_lit: true };
        assert_eq!(boxes(&symbols, &Sites::default(), &[leaf], WIDE).len(), 65_537);
    }
}
