//! Which allocations lie together in the stack: the classes of a colouring, in stacking order.

use rustc_hash::FxHashMap;

use crate::analysis::matches::Matches;
use crate::analysis::paint::Painter;
use crate::analysis::usage::Usage;
use crate::frames::StackId;
use crate::order;
use crate::query::{Class, ColorBy, Paint};
use crate::units::Bytes;

/// The class of an allocation that the filter leaves out.
pub const EXCLUDED: u8 = u8::MAX;

/// Call sites that are told apart. More bands than this can't be told apart by eye, and each costs eight bytes a
/// bucket.
const LARGEST_SITES: usize = 60;

/// A partition of a device's allocations.
#[derive(Debug, Default)]
pub struct Classes {
    /// By allocation: its class, or [`EXCLUDED`].
    pub of: Vec<u8>,
    /// The classes from the bottom of the stack up. With a highlight each comes twice: what matches, then what doesn't.
    pub classes: Vec<Class>,
}

impl Classes {
    /// Sorts allocations into classes by what they are coloured by.
    pub fn build(painter: &Painter<'_>, usage: &Usage, filter: Option<&Matches>, highlight: Option<&Matches>) -> Self {
        let (key_of, classes) = match painter.color_by {
            ColorBy::Site => by_site(painter, usage),
            _ => by_paint(painter),
        };
        let mut new = Self { of: key_of, classes };
        if let Some(highlight) = highlight {
            new.split(highlight);
        }
        if let Some(filter) = filter {
            for (class, number) in new.of.iter_mut().zip(0..) {
                if !filter.contains(number) {
                    *class = EXCLUDED;
                }
            }
        }
        new
    }

    /// Splits each class into what matches and what doesn't.
    fn split(&mut self, highlight: &Matches) {
        for (class, number) in self.of.iter_mut().zip(0..) {
            *class = class.saturating_mul(2).saturating_add(u8::from(!highlight.contains(number)));
        }
        let split = |c: Class| {
            let faint = Class { paint: c.paint.with(Paint::DIM), ..c.clone() };
            [c, faint]
        };
        self.classes = std::mem::take(&mut self.classes).into_iter().flat_map(split).collect();
    }
}

/// One class for each of the largest call sites' lines, those that hold their memory longest at the bottom; then one
/// for the rest.
fn by_site(painter: &Painter<'_>, usage: &Usage) -> (Vec<u8>, Vec<Class>) {
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
    // What is large at some instant counts, and what is there for long: a spike must not drown in a long run.
    let run = f64::from(painter.replay.positions()) + 1.0;
    order::sort_by(&mut ranked, |(i, a), (j, b)| {
        let weight = |l: &Line| l.area / run + l.peak;
        weight(b).total_cmp(&weight(a)).then(i.cmp(j))
    });
    let has_rest = ranked.len() > LARGEST_SITES;
    ranked.truncate(LARGEST_SITES);
    let held = |l: &Line| if l.peak > 0.0 { l.area / run / l.peak } else { 0.0 };
    order::sort_by(&mut ranked, |(i, a), (j, b)| held(b).total_cmp(&held(a)).then(i.cmp(j)));
    let number: FxHashMap<u32, u8> = ranked.iter().zip(0..).map(|((line, _), class)| (*line, class)).collect();
    let rest = ranked.len() as u8;
    let mut classes: Vec<Class> = ranked
        .iter()
        .map(|(_, line)| {
            let stack = line.largest.1;
            Class {
                label: painter.sites.label(stack).to_owned(),
                paint: painter.sites.paint(stack),
                stack: Some(stack.0),
                peak_bytes: 0,
            }
        })
        .collect();
    if has_rest {
        classes.push(Class { label: "other call sites".to_owned(), paint: Paint::OTHER, stack: None, peak_bytes: 0 });
    }
    let of_line = |stack: u32| number.get(&painter.sites.line(StackId(stack))).copied().unwrap_or(rest);
    let stacks = usage.iter().map(|(stack, _)| stack.0 as usize + 1).max().unwrap_or(0);
    let of_stack: Vec<u8> = (0..stacks as u32).map(of_line).collect();
    let of = painter.replay.allocations.stack.iter();
    (of.map(|stack| of_stack.get(stack as usize).copied().unwrap_or(rest)).collect(), classes)
}

/// One class for each colour that occurs.
fn by_paint(painter: &Painter<'_>) -> (Vec<u8>, Vec<Class>) {
    let paints: Vec<u16> = painter.replay.allocations.iter().map(|a| painter.paint(&a).base().0).collect();
    let mut occurs = [false; 1 << 8];
    for &paint in &paints {
        occurs[usize::from(paint & 0xff)] = true;
    }
    let mut order: Vec<u16> = (0..).zip(occurs).filter(|(_, occurs)| *occurs).map(|(paint, _)| paint).collect();
    // Ordered quantities: what is largest or lives longest lies at the bottom.
    if matches!(painter.color_by, ColorBy::Size | ColorBy::Lifetime) {
        order.reverse();
    }
    let classes = order
        .iter()
        .map(|&paint| Class { label: label(painter, Paint(paint)), paint: Paint(paint), stack: None, peak_bytes: 0 })
        .collect();
    let of = paints.iter().map(|&p| order.iter().position(|&o| o == p).unwrap_or(0) as u8).collect();
    (of, classes)
}

/// What a colour stands for.
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
        ColorBy::Size if step == 0 => format!("below {}", size(1)),
        ColorBy::Size if step == last => format!("{} and more", size(step)),
        ColorBy::Size => format!("{} to {}", size(step), size(step + 1)),
        ColorBy::Lifetime if step == last => "outlives the trace".to_owned(),
        ColorBy::Lifetime if step == 0 => format!("below {}", time(1)),
        ColorBy::Lifetime => format!("{} to {}", time(step), time(step + 1)),
        ColorBy::Stream => {
            let of_paint: Vec<String> = (painter.streams.iter().zip(0..))
                .filter(|(_, i)| Paint::slot(*i) == paint)
                .map(|(stream, _)| stream.to_string())
                .collect();
            format!("stream {}", of_paint.join(", "))
        }
        ColorBy::Pool => match paint.0 {
            0 => "small pool".to_owned(),
            1 => "large pool".to_owned(),
            slot => {
                let of_paint: Vec<String> = (painter.replay.pools.iter().zip(0_u16..).skip(1))
                    .filter(|(_, i)| 2 + (i - 1) % (Paint::SLOTS - 2) == slot)
                    .map(|(pool, _)| pool.to_string())
                    .collect();
                format!("private pool {}", of_paint.join(", "))
            }
        },
    }
}
