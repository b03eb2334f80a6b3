//! Active memory as a tree of frames, laid out in boxes: from the outermost frame, or from the innermost one.
//!
//! The tree itself is never built. Level by level, each box passes its stacks to the boxes below; a box narrower than a
//! pixel passes none. The work is therefore proportional to the pixels, and a stack of 65,536 frames needs no
//! recursion. For the same reason transforms change stacks, not a tree.

mod step;
mod transform;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use self::step::{Key, Steps};
use self::transform::{Row, apply, halve};
use super::best_frames::BestFrames;
use super::site::{Sites, name_of};
use query::category::Category;
use query::folding::{names_text, short_location, short_name};
use query::{FlameBox, LOST_STACK, NO_STACK, Paint, Quads, Sandwich, Transform};
use trace::frames::{FrameId, StackId, StackRecord, Symbols};
use trace::order::SortFew;
use trace::text::escaped;
use trace::units::counted;

/// The active memory of one stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaf {
    /// The stack.
    pub stack: StackId,
    /// Requested bytes.
    pub bytes: u64,
    /// Requested bytes at the earlier position. The leaf is as wide as the larger of the two sums.
    pub before: u64,
    /// Number of allocations.
    pub count: u32,
    /// Whether the search matches any of its allocations.
    pub is_lit: bool,
    /// The bytes of its width that the search matches.
    pub matched: u64,
    /// The category of its allocations, if the first level are categories.
    pub category: Option<Category>,
}

impl Leaf {
    /// Returns its width in bytes: the larger of `bytes` and `before`.
    pub fn width(&self) -> u64 {
        self.bytes.max(self.before)
    }
}

/// Returns the leaves of two trees, merged by stack and category: those of `after` in their order, then those that only
/// `before` has. Both trees must number stacks alike; the stacks of two files are interned together first.
pub fn difference(before: &[Leaf], after: &[Leaf]) -> Vec<Leaf> {
    let key = |leaf: &Leaf| (leaf.stack, leaf.category);
    let mut leaves: Vec<Leaf> = Vec::with_capacity(after.len());
    let mut places: FxHashMap<(StackId, Option<Category>), usize> = FxHashMap::default();
    for (is_before, leaf) in after.iter().map(|leaf| (false, leaf)).chain(before.iter().map(|leaf| (true, leaf))) {
        let place = *places.entry(key(leaf)).or_insert(leaves.len());
        if place == leaves.len() {
            leaves.push(Leaf { bytes: 0, before: 0, count: 0, is_lit: false, matched: 0, ..*leaf });
        }
        let Some(sum) = leaves.get_mut(place) else { continue };
        if is_before {
            sum.before = sum.before.saturating_add(leaf.bytes);
        } else {
            sum.bytes = sum.bytes.saturating_add(leaf.bytes);
            sum.count = sum.count.saturating_add(leaf.count);
        }
        sum.is_lit |= leaf.is_lit;
        sum.matched = sum.matched.max(leaf.matched);
    }
    leaves.retain(|leaf| leaf.width() > 0);
    leaves
}

/// How boxes are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// Whether the innermost frame comes first, rather than the outermost.
    pub bottom_up: bool,
    /// Whether runs of library frames are one box each.
    pub folds: bool,
    /// The transforms of the stacks, applied in this order.
    pub transforms: &'a [Transform],
    /// One half of a sandwich, after the transforms.
    pub sandwich: Option<Sandwich>,
    /// Whether the search matches each frame. If set, a box is lit for its own frames, not for the allocations below
    /// it.
    pub hits: Option<&'a [bool]>,
    /// Frame numbers of the boxes that were zoomed into, from the root on.
    pub zoom: &'a [u32],
    /// Width of the view in pixels.
    pub width: f32,
    /// Why there are allocations without a stack, in a few words.
    pub no_stack: &'a str,
}

/// A flame graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// Its boxes: root first, by depth and then from left to right. Children are never wider than their parent together;
    /// those that are too narrow are summed into one box beside their siblings.
    pub boxes: Vec<FlameBox>,
    /// The sum of the widths of the stacks that the transforms left.
    pub total: u64,
    /// The bytes of the total that the search matches.
    pub matched: u64,
}

/// Lays out a flame graph.
pub fn picture(symbols: &Symbols, sites: &Sites, leaves: &[Leaf], shape: Shape<'_>) -> Picture {
    let steps = Steps { best: sites.best_frames(), bottom_up: shape.bottom_up, folds: shape.folds };
    let transformed = |leaf: &Leaf| {
        let mut row = Row::new(&steps, symbols.stack(leaf.stack));
        for transform in shape.transforms {
            row = apply(&steps, row, leaf.category, transform)?;
        }
        match shape.sandwich {
            Some(sandwich) => halve(&steps, row, sandwich),
            None => Some(row),
        }
    };
    let rows = leaves.iter().map(transformed).collect();
    Layout { symbols, sites, leaves, shape, steps, rows }.picture()
}

/// Returns the name for the number of a box: that of a function, a library, a category, or a file without symbols.
pub fn box_name(symbols: &Symbols, sites: &Sites, number: u32) -> String {
    let best = sites.best_frames();
    match Key::of(number) {
        Key::Frame(id) if (id.0 as usize) < symbols.frame_count() => {
            let frame = symbols.frame(id);
            if best.is_nameless(id) {
                return nameless(symbols, id);
            }
            short_name(&symbols.text(frame.name), &symbols.text(frame.filename)).to_owned()
        }
        Key::Folded(library) | Key::Library(library) => library_name(best, library),
        Key::Category(category) => category.name().to_owned(),
        Key::Frame(_) | Key::NoStack | Key::LostStack => String::new(),
    }
}

/// Returns the name of a library, or of the user's own code.
fn library_name(best: &BestFrames, library: u32) -> String {
    match best.library_name(library) {
        "" => "own code".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the name of the function or library that a transform changes.
pub fn transform_name(symbols: &Symbols, sites: &Sites, transform: &Transform) -> String {
    match transform {
        Transform::CollapseLibrary(frame) if *frame < FlameBox::FOLDED => {
            let best = sites.best_frames();
            library_name(best, best.library(FrameId(*frame)))
        }
        transform => box_name(symbols, sites, transform.parts().1),
    }
}

/// Returns the name of a native frame without symbols: the file name of its library.
fn nameless(symbols: &Symbols, id: FrameId) -> String {
    let file = symbols.unshown(symbols.frame(id).filename);
    match file.rsplit(['/', '\\']).next() {
        None | Some("" | "??") => "native code".to_owned(),
        Some(file) => escaped(file).into_owned(),
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
    /// Its width in bytes.
    width: u64,
    bytes: u64,
    before: u64,
    count: u32,
    is_lit: bool,
    leaves: Vec<Below>,
}

impl Sum {
    fn add(&mut self, leaf: &Leaf) {
        self.width = self.width.saturating_add(leaf.width());
        self.bytes = self.bytes.saturating_add(leaf.bytes);
        self.before = self.before.saturating_add(leaf.before);
        self.count = self.count.saturating_add(leaf.count);
        self.is_lit |= leaf.is_lit;
    }
}

struct Layout<'a> {
    symbols: &'a Symbols,
    sites: &'a Sites,
    leaves: &'a [Leaf],
    shape: Shape<'a>,
    steps: Steps<'a>,
    /// By leaf: its stack after the transforms; `None` if it was left out.
    rows: Vec<Option<Row<'a>>>,
}

impl Layout<'_> {
    fn picture(self) -> Picture {
        let mut root = Sum::default();
        let mut matched: u64 = 0;
        for (leaf, _) in self.leaves.iter().zip(&self.rows).filter(|(_, row)| row.is_some()) {
            root.add(leaf);
            matched = matched.saturating_add(leaf.matched.min(leaf.width()));
        }
        let whole = root.width;
        let below = |leaf: usize| {
            let is_sorted = self.leaves.get(leaf).is_none_or(|leaf| leaf.category.is_none());
            Below { leaf, from: 0, at: 0, open_until: 0, is_sorted }
        };
        let is_left = |leaf: &usize| self.rows.get(*leaf).is_some_and(Option::is_some);
        root.leaves = (0..self.leaves.len()).filter(is_left).map(below).collect();
        root.is_lit |= self.shape.hits.is_some();
        let name = match self.shape.sandwich {
            Some(sandwich) => format!("through {}", box_name(self.symbols, self.sites, sandwich.frame)),
            None => "all live memory".to_owned(),
        };
        let mut boxes = vec![self.plain_box(name, 0, (0.0, 1.0), &root)];
        let mut depth = 0;
        for (i, &number) in self.shape.zoom.iter().enumerate() {
            depth += 1;
            let key = Key::of(number);
            root = self.children(&root.leaves).remove(&key).unwrap_or_default();
            boxes.push(self.key_box(key, depth, (0.0, 1.0), &root));
            // A folded run that was zoomed into is open, unless the path goes on after it.
            let next = self.shape.zoom.get(i + 1).map(|&number| Key::of(number));
            let is_passed = next.is_some_and(|next| self.children(&root.leaves).contains_key(&next));
            if matches!(key, Key::Folded(_)) && !is_passed {
                for below in &mut root.leaves {
                    (below.open_until, below.at) = (below.at, below.from);
                }
            }
        }
        let total = root.width;
        if total == 0 {
            return Picture { boxes, total: whole, matched };
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
                if (sum.width as f64) < pixel {
                    smaller += 1;
                    small.width = small.width.saturating_add(sum.width);
                    small.before = small.before.saturating_add(sum.before);
                    small.bytes = small.bytes.saturating_add(sum.bytes);
                    small.count = small.count.saturating_add(sum.count);
                    small.is_lit |= sum.is_lit;
                    continue;
                }
                let right = left.saturating_add(sum.width);
                boxes.push(self.key_box(key, depth, (share(left), share(right)), &sum));
                if !matches!(key, Key::NoStack | Key::LostStack) {
                    open.push_back(Open { depth, left, leaves: sum.leaves });
                }
                left = right;
            }
            if small.width > 0 {
                let x = (share(left), share(left.saturating_add(small.width)));
                boxes.push(self.plain_box(format!("{smaller} smaller"), depth, x, &small));
            }
        }
        Picture { boxes, total: whole, matched }
    }

    /// Returns the children of a box with these leaves. A leaf that ends at the box is in none.
    fn children(&self, leaves: &[Below]) -> FxHashMap<Key, Sum> {
        let mut children: FxHashMap<Key, Sum> = FxHashMap::default();
        for &below in leaves {
            let Some(leaf) = self.leaves.get(below.leaf) else { continue };
            let (key, next) = match self.next(below) {
                _ if !below.is_sorted => {
                    (Key::Category(leaf.category.unwrap_or_default()), Below { is_sorted: true, ..below })
                }
                Some(next) => next,
                None if below.at == 0 => match self.symbols.recorded(leaf.stack) {
                    StackRecord::Nothing => (Key::NoStack, below),
                    StackRecord::Lost => (Key::LostStack, below),
                    StackRecord::Partly | StackRecord::Whole => continue,
                },
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
            Key::Folded(library) | Key::Library(library) => {
                (self.sites.best_frames().library_name(*library).as_bytes(), &[][..], 0, *library)
            }
            Key::NoStack | Key::LostStack => (&[][..], &[][..], 0, u32::from(*key == Key::LostStack)),
            Key::Category(category) => (category.name().as_bytes(), &[][..], 0, 0),
        };
        children.sort_few_by(|(a, x), (b, y)| y.width.cmp(&x.width).then_with(|| name(a).cmp(&name(b))));
        children
    }

    /// Returns what is below a box in one of its leaves: the next frame, or a folded run.
    fn next(&self, below: Below) -> Option<(Key, Below)> {
        let row = self.row(below.leaf)?;
        let step = self.steps.next(&row.frames, row.shown, below.at, below.open_until)?;
        Some((step.key, Below { from: step.from, at: step.at, ..below }))
    }

    fn row(&self, leaf: usize) -> Option<&Row<'_>> {
        self.rows.get(leaf).and_then(Option::as_ref)
    }

    /// Returns the frames that a box represents in one of its leaves, innermost first. A folded run has several.
    fn run(&self, below: &Below) -> &[FrameId] {
        let Some(row) = self.row(below.leaf) else { return &[] };
        let (length, from, to) = (row.frames.len(), below.from, below.at.max(below.open_until));
        let range =
            if self.shape.bottom_up { from..to } else { length.saturating_sub(to)..length.saturating_sub(from) };
        row.frames.get(range).unwrap_or_default()
    }

    /// Returns whether the search matches a box: its own frames if it is a search for frames, otherwise its allocations.
    fn is_lit(&self, key: Key, sum: &Sum) -> bool {
        let Some(hits) = self.shape.hits else { return sum.is_lit };
        let is_hit = |frame: &FrameId| hits.get(frame.0 as usize).copied().unwrap_or(false);
        match key {
            Key::Frame(id) => is_hit(&id),
            Key::Folded(_) => sum.leaves.iter().any(|below| self.run(below).iter().any(is_hit)),
            Key::Library(library) => {
                let best = self.sites.best_frames();
                let is_match = |frame: &FrameId| best.library(*frame) == library && is_hit(frame);
                let stacks = sum.leaves.iter().filter_map(|below| self.leaves.get(below.leaf));
                stacks.into_iter().any(|leaf| self.symbols.stack(leaf.stack).iter().any(is_match))
            }
            Key::NoStack | Key::LostStack | Key::Category(_) => false,
        }
    }

    fn key_box(&self, key: Key, depth: u32, x: (f32, f32), sum: &Sum) -> FlameBox {
        let is_lit = self.is_lit(key, sum);
        let (name, location, number) = match key {
            Key::Frame(id) if self.symbols.is_lost_frame(id) => {
                (name_of(self.symbols, self.symbols.frame(id).name).into_owned(), "lost to damage".to_owned(), id.0)
            }
            Key::Frame(id) if self.sites.best_frames().is_nameless(id) => {
                (nameless(self.symbols, id), "no symbols".to_owned(), id.0)
            }
            Key::Library(library) => {
                let name = library_name(self.sites.best_frames(), library);
                (name, "collapsed".to_owned(), FlameBox::COLLAPSED + library)
            }
            Key::Frame(id) => {
                let frame = self.symbols.frame(id);
                (self.symbols.text(frame.name).into_owned(), short_location(self.symbols, frame), id.0)
            }
            Key::Folded(library) => (self.folded_name(sum), String::new(), FlameBox::FOLDED + library),
            Key::Category(category) => {
                let number = FlameBox::CATEGORY + category as u32;
                let plain = self.plain_box(category.name().to_owned(), depth, x, sum);
                return FlameBox { frame: number, paint: dimmed(Paint::category(category), is_lit), ..plain };
            }
            Key::LostStack => {
                let plain = self.plain_box(LOST_STACK.to_owned(), depth, x, sum);
                return FlameBox { paint: dimmed(Paint::OTHER, is_lit), ..plain };
            }
            Key::NoStack => {
                let location = self.shape.no_stack.to_owned();
                let plain = self.plain_box(NO_STACK.to_owned(), depth, x, sum);
                return FlameBox { location, paint: dimmed(Paint::OTHER, is_lit), ..plain };
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
            paint: dimmed(paint, is_lit),
            ..self.plain_box(String::new(), depth, x, sum)
        }
    }

    /// Names a box of folded runs: `3 frames of torch`, or `3 to 5 frames of torch and einops` if they differ.
    fn folded_name(&self, sum: &Sum) -> String {
        let best = self.sites.best_frames();
        let lengths = || sum.leaves.iter().map(|below| below.at.max(below.open_until).saturating_sub(below.from));
        let (least, most) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
        let frames = counted(most as u64, "frame");
        let frames = if least == most { frames } else { format!("{least} to {frames}") };
        // The outermost frame names the library that was called.
        let libraries = sum
            .leaves
            .iter()
            .flat_map(|below| self.run(below).iter().rev().map(|id| best.library_name(best.library(*id))));
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
            before: sum.before,
            count: sum.count,
            stack: None,
            paint: dimmed(Paint::OTHER, sum.is_lit),
        }
    }
}

fn dimmed(paint: Paint, is_lit: bool) -> Paint {
    if is_lit { paint } else { paint.with(Paint::DIM) }
}

#[cfg(test)]
mod tests;
