//! The classes of a colouring, in stacking order: allocations of one class are drawn together.

use rustc_hash::FxHashMap;

use super::BUCKET;
use crate::matches::Matches;
use crate::paint::Painter;
use crate::usage::Usage;
use query::{Category, Class, ColorBy, Paint, pool_name, stream_name};
use trace::frames::StackId;
use trace::order::SortFew;
use trace::units::Bytes;

/// The class of an allocation that the filter excludes.
pub const EXCLUDED: u8 = u8::MAX;

/// The number of call sites with a class of their own. More bands cannot be distinguished by eye, and each takes eight
/// bytes a bucket.
const LARGEST_SITES: usize = 60;

/// A partition of a device's allocations.
#[derive(Debug, Default)]
pub struct Classes {
    /// The class of each allocation, or [`EXCLUDED`].
    pub class_of: Vec<u8>,
    /// The classes from the bottom of the stack up. With a highlight each occurs twice: first for the allocations that
    /// match, then for the others.
    pub classes: Vec<Class>,
    keys: ClassKeys,
}

/// The key of each class, by which later allocations find theirs.
#[derive(Debug, Default)]
struct ClassKeys {
    /// When colouring by call site: the class of each line. Other lines belong to the rest.
    lines: FxHashMap<u32, u8>,
    /// When colouring by anything else: the colours in stacking order.
    paints: Vec<u16>,
    /// Whether each class occurs twice.
    is_split: bool,
    /// The number of positions when call sites were chosen.
    chosen_at: u32,
    /// The number of streams and pools, which labels name.
    named: (usize, usize),
}

impl Classes {
    /// Assigns all allocations to classes.
    pub(super) fn build(
        painter: &Painter<'_>,
        usage: &Usage,
        filter: Option<&Matches>,
        highlight: Option<&Matches>,
    ) -> Self {
        let mut new = match painter.color_by {
            ColorBy::Site => by_site(painter, usage),
            _ => by_paint(painter),
        };
        new.keys.named = named(painter);
        if let Some(highlight) = highlight {
            new.split(highlight);
        }
        if let Some(filter) = filter {
            for (class, number) in new.class_of.iter_mut().zip(0..) {
                if !filter.contains(number) {
                    *class = EXCLUDED;
                }
            }
        }
        new
    }

    /// Assigns the new allocations to classes. New call sites get a class of their own while there are fewer than the
    /// maximum. Returns `false` if the classes must be built again. Of earlier allocations `filter` and `highlight`
    /// must match what they matched before.
    pub(super) fn extend(
        &mut self,
        painter: &Painter<'_>,
        usage: &Usage,
        filter: Option<&Matches>,
        highlight: Option<&Matches>,
    ) -> bool {
        // A lifetime is known only at its end, and a category follows from it.
        if matches!(painter.color_by, ColorBy::Lifetime | ColorBy::Category) || named(painter) != self.keys.named {
            return false;
        }
        let is_site = painter.color_by == ColorBy::Site;
        if is_site && self.is_outgrown(painter, usage) {
            return false;
        }
        let allocations = &painter.replay.allocations;
        if is_site {
            self.add_sites(painter);
        }
        for number in self.class_of.len() as u32..allocations.len() as u32 {
            let Some(allocation) = allocations.get(number) else { break };
            let class = if is_site {
                Some(self.class_of_site(painter, allocation.stack))
            } else {
                let paint = painter.paint(number, &allocation).base().0;
                self.keys.paints.iter().position(|&known| known == paint).map(|class| class as u8)
            };
            let Some(mut class) = class else { return false };
            if let Some(highlight) = highlight {
                class = class.saturating_mul(2).saturating_add(u8::from(!highlight.contains(number)));
            }
            let is_shown = filter.is_none_or(|filter| filter.contains(number));
            self.class_of.push(if is_shown { class } else { EXCLUDED });
        }
        true
    }

    /// Adds a class for each new call site, in the order of their ranks, up to [`LARGEST_SITES`].
    fn add_sites(&mut self, painter: &Painter<'_>) {
        let mut new: FxHashMap<u32, StackId> = FxHashMap::default();
        let stacks = &painter.replay.allocations.stack;
        for stack in stacks.range(self.class_of.len()..stacks.len()).map(StackId) {
            let line = painter.sites.line(stack);
            if !self.keys.lines.contains_key(&line) {
                new.entry(line).or_insert(stack);
            }
        }
        let mut new: Vec<(u32, StackId)> = new.into_iter().collect();
        new.sort_few_by_key(|(line, stack)| (painter.sites.rank_of(*stack), *line));
        for (line, stack) in new {
            let count = self.keys.lines.len();
            if count < LARGEST_SITES {
                self.keys.lines.insert(line, count as u8);
                self.add(site_class(painter, stack));
            } else if self.classes.len() <= count * (1 + usize::from(self.keys.is_split)) {
                self.add(rest_class());
            }
        }
    }

    /// Returns the class of a call site.
    fn class_of_site(&self, painter: &Painter<'_>, stack: StackId) -> u8 {
        let line = painter.sites.line(stack);
        self.keys.lines.get(&line).copied().unwrap_or(self.keys.lines.len() as u8)
    }

    fn add(&mut self, class: Class) {
        let faint = self.keys.is_split.then(|| faint(&class));
        self.classes.push(class);
        self.classes.extend(faint);
    }

    /// Returns whether other call sites are now the largest. This is checked each time that the run's length has
    /// doubled.
    fn is_outgrown(&mut self, painter: &Painter<'_>, usage: &Usage) -> bool {
        let positions = painter.replay.positions();
        if positions < self.keys.chosen_at.saturating_mul(2).saturating_add(BUCKET) {
            return false;
        }
        self.keys.chosen_at = positions;
        let (chosen, _) = largest_sites(painter, usage);
        chosen.iter().any(|(line, _)| !self.keys.lines.contains_key(line))
    }

    /// Splits each class into the allocations that match and the others.
    fn split(&mut self, highlight: &Matches) {
        for (class, number) in self.class_of.iter_mut().zip(0..) {
            *class = class.saturating_mul(2).saturating_add(u8::from(!highlight.contains(number)));
        }
        self.keys.is_split = true;
        for class in std::mem::take(&mut self.classes) {
            self.add(class);
        }
    }
}

/// Returns the class for the allocations that do not match.
fn faint(class: &Class) -> Class {
    Class { paint: class.paint.with(Paint::DIM), ..class.clone() }
}

fn site_class(painter: &Painter<'_>, stack: StackId) -> Class {
    let (label, paint) = (painter.sites.label(stack).to_owned(), painter.sites.paint(stack));
    Class { label, paint, stack: Some(painter.sites.first(stack).0), peak_bytes: 0 }
}

fn rest_class() -> Class {
    Class { label: "other call sites".to_owned(), paint: Paint::OTHER, stack: None, peak_bytes: 0 }
}

/// Returns the number of streams and pools, which labels name.
fn named(painter: &Painter<'_>) -> (usize, usize) {
    (painter.streams.len(), painter.replay.pools.len())
}

/// Returns the largest call sites' lines, each with the stack that represents it, in the order of their ranks, and whether
/// there are more.
fn largest_sites(painter: &Painter<'_>, usage: &Usage) -> (Vec<(u32, StackId)>, bool) {
    #[derive(Default)]
    struct Line {
        area: f64,
        peak: f64,
        largest: (f64, StackId),
    }
    let mut lines: FxHashMap<u32, Line> = FxHashMap::default();
    for (stack, site) in usage.iter() {
        let line = lines.entry(painter.sites.line(stack)).or_default();
        line.area += site.area;
        line.peak += site.peak_bytes as f64;
        if site.area >= line.largest.0 {
            line.largest = (site.area, stack);
        }
    }
    let mut ranked: Vec<(u32, Line)> = lines.into_iter().collect();
    // Both the size at some instant and the time held count: a spike must not vanish in a long run.
    let run = f64::from(painter.replay.positions()) + 1.0;
    ranked.sort_few_by(|(i, a), (j, b)| {
        let weight = |l: &Line| l.area / run + l.peak;
        weight(b).total_cmp(&weight(a)).then(i.cmp(j))
    });
    let has_rest = ranked.len() > LARGEST_SITES;
    ranked.truncate(LARGEST_SITES);
    ranked.sort_few_by_key(|(line, sums)| (painter.sites.rank_of(sums.largest.1), *line));
    (ranked.into_iter().map(|(line, sums)| (line, sums.largest.1)).collect(), has_rest)
}

/// Makes one class for each of the largest call sites' lines, in the order of their ranks, then one for the rest.
fn by_site(painter: &Painter<'_>, usage: &Usage) -> Classes {
    let (chosen, has_rest) = largest_sites(painter, usage);
    let lines: FxHashMap<u32, u8> = chosen.iter().zip(0..).map(|((line, _), class)| (*line, class)).collect();
    let rest = chosen.len() as u8;
    let mut classes: Vec<Class> = chosen.iter().map(|(_, stack)| site_class(painter, *stack)).collect();
    if has_rest {
        classes.push(rest_class());
    }
    let of_line = |stack: u32| lines.get(&painter.sites.line(StackId(stack))).copied().unwrap_or(rest);
    let stacks = usage.iter().map(|(stack, _)| stack.0 as usize + 1).max().unwrap_or(0);
    let of_stack: Vec<u8> = (0..stacks as u32).map(of_line).collect();
    let class_of = painter.replay.allocations.stack.iter();
    let class_of = class_of.map(|stack| of_stack.get(stack as usize).copied().unwrap_or(rest)).collect();
    let keys = ClassKeys { lines, chosen_at: painter.replay.positions(), ..ClassKeys::default() };
    Classes { class_of, classes, keys }
}

/// Makes one class for each colour that occurs.
fn by_paint(painter: &Painter<'_>) -> Classes {
    let paints: Vec<u16> =
        (0..).zip(painter.replay.allocations.iter()).map(|(id, a)| painter.paint(id, &a).base().0).collect();
    let mut occurs = [false; 1 << 8];
    for &paint in &paints {
        occurs[usize::from(paint & 0xff)] = true;
    }
    let mut order: Vec<u16> = (0..).zip(occurs).filter(|(_, occurs)| *occurs).map(|(paint, _)| paint).collect();
    // The largest and the longest-lived allocations lie at the bottom.
    if matches!(painter.color_by, ColorBy::Size | ColorBy::Lifetime) {
        order.reverse();
    }
    let classes = order
        .iter()
        .map(|&paint| Class { label: label(painter, Paint(paint)), paint: Paint(paint), stack: None, peak_bytes: 0 })
        .collect();
    let class_of = paints.iter().map(|&p| order.iter().position(|&o| o == p).unwrap_or(0) as u8).collect();
    Classes { class_of, classes, keys: ClassKeys { paints: order, ..ClassKeys::default() } }
}

/// Returns the label of a colour.
fn label(painter: &Painter<'_>, paint: Paint) -> String {
    let step = u32::from(paint.0.saturating_sub(Paint::ramp(0).0));
    let size = |step: u32| Bytes(1 << (8 + 2 * step));
    let time = |step: u32| {
        let (unit, thousands) = [("µs", 0), ("ms", 3), ("s", 6)][step.min(8) as usize / 3];
        format!("{} {unit}", 10_u64.pow(step - thousands))
    };
    let last = u32::from(Paint::RAMP) - 1;
    match painter.color_by {
        ColorBy::Site => String::new(),
        ColorBy::Category => {
            let of_paint = Category::ALL.into_iter().find(|category| Paint::category(*category) == paint);
            of_paint.unwrap_or_default().name().to_owned()
        }
        ColorBy::Size if step == 0 => format!("below {}", size(1)),
        ColorBy::Size if step == last => format!("{} and more", size(step)),
        ColorBy::Size => format!("{} to {}", size(step), size(step + 1)),
        ColorBy::Lifetime if step == last => "still live at the end".to_owned(),
        ColorBy::Lifetime if step == 0 => format!("below {}", time(1)),
        ColorBy::Lifetime => format!("{} to {}", time(step), time(step + 1)),
        ColorBy::Stream => {
            let of_paint: Vec<String> = (painter.streams.iter().zip(0..))
                .filter(|(_, i)| Paint::slot(*i) == paint)
                .map(|(stream, _)| stream_name(*stream, painter.streams))
                .collect();
            of_paint.join(", ")
        }
        ColorBy::Pool => match paint.0 {
            0 => "small pool".to_owned(),
            1 => "large pool".to_owned(),
            slot => {
                let of_paint: Vec<String> = (painter.replay.pools.iter().zip(0_u16..).skip(1))
                    .filter(|(_, i)| 2 + (i - 1) % (Paint::SLOTS - 2) == slot)
                    .map(|(pool, _)| pool_name(*pool))
                    .collect();
                of_paint.join(", ")
            }
        },
    }
}
