//! The stacked allocations of a window.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::classes::{Classes, EXCLUDED};
use super::columns::{self, Span};
use super::pyramid::Pyramid;
use super::sampled;
use super::stack::Stack;
use super::strips::{Part, Piece, Strips};
use super::totals::{RunningTotals, losses};
use crate::paint::Painter;
use query::{Class, Detail, LossSpan, Packed, Paint, Quads, Timeline, TimelineQuery};
use replay::{Allocation, Change, Replay};
use trace::DeviceTrace;
use trace::order::sort_numbers_by_key;

/// The largest number of positions in a window whose allocations are drawn one by one. In a larger window classes are
/// drawn. A sweep over this many positions takes a few tens of milliseconds.
const SHAPES_POSITIONS: u32 = 1 << 18;
/// The largest number of pixel columns, and of rows, in one answer: twice the widest screen.
const MOST_COLUMNS: u32 = 16_384;

/// The indexes that a timeline is drawn from.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The device's trace.
    pub trace: &'a DeviceTrace,
    /// Its replay.
    pub replay: &'a Replay,
    /// Its totals.
    pub totals: &'a RunningTotals,
    /// The classes of the colouring.
    pub classes: &'a Classes,
    /// Their sums.
    pub pyramid: &'a Pyramid,
    /// Colours of single allocations.
    pub painter: &'a Painter<'a>,
    /// Whether each class occurs twice, for the allocations that match a search and for the others.
    pub is_highlighted: bool,
}

/// Answers [`Query::Timeline`](query::Query::Timeline).
pub fn timeline(scene: Scene<'_>, query: &TimelineQuery) -> Timeline {
    let Scene { trace, replay, totals, classes, pyramid, .. } = scene;
    let columns = query.columns.clamp(1, MOST_COLUMNS);
    let spans: Vec<Option<Span>> = columns::spans(trace, replay, query.axis, query.window, columns).collect();
    let peaks: Vec<Option<(u64, u32)>> =
        spans.iter().map(|span| span.map(|span| pyramid.peak(trace, replay, classes, span))).collect();
    let seen = spans.iter().flatten().fold(None, |seen: Option<Span>, span| {
        Some(seen.map_or(*span, |s| Span { first: s.first.min(span.first), last: s.last.max(span.last) }))
    });
    let in_window = seen.map_or(0, |s| s.last - s.first);
    let mut active = Packed::default();
    let (detail, quads) = if in_window <= SHAPES_POSITIONS {
        for peak in &peaks {
            active.push(peak.map_or(0, |(top, position)| totals.at(trace, replay, position).1.max(top)));
        }
        (Detail::Allocations, allocations(scene, query, &peaks))
    } else {
        (Detail::Classes, bands(scene, query, &peaks, &mut active))
    };
    let reserved = spans.iter().map(|span| span.map_or(0, |span| totals.largest_reserved(replay, span).0));
    let mut reserved: Vec<u64> = reserved.collect();
    if let Some(sample) = sampled::newest(trace, replay) {
        let newest = |bytes: u64| spans.iter().map(|span| span.map_or(0, |_| bytes)).collect::<Vec<_>>();
        (active, reserved) = (newest(sample.active).into(), newest(sample.reserved));
    }
    raise(&mut reserved, query, &losses(trace, replay, totals, query.axis));
    let count = seen.map_or(0, |s| {
        let begun = replay.allocations.made_by(s.first)..replay.allocations.made_by(s.last);
        let passes = |&n: &u32| classes.class_of.get(n as usize).is_some_and(|&class| class != EXCLUDED);
        replay.active_at(s.first).into_iter().chain(begun).filter(passes).count() as u32
    });
    Timeline {
        query: TimelineQuery { columns, ..query.clone() },
        detail,
        quads,
        classes: labelled(scene),
        top: peaks.iter().map(|p| p.map_or(0, |p| p.0)).collect::<Vec<_>>().into(),
        position: peaks.iter().map(|p| p.map_or(0, |p| p.1)).collect::<Vec<_>>().into(),
        active,
        reserved: reserved.into(),
        allocations: count,
        newest_us: seen.and_then(|s| newest_us(trace, s.last)),
    }
}

/// Raises columns to the statistics where events are missing.
fn raise(columns: &mut [u64], query: &TimelineQuery, losses: &[LossSpan]) {
    let count = columns.len();
    let per_unit = count as f64 / query.window.length();
    let column = |x: f64| (x - query.window.start) * per_unit;
    for loss in losses {
        let ends = loss.samples.iter().skip(1).map(|sample| sample.x).chain([loss.span.end]);
        for (sample, end) in loss.samples.iter().zip(ends) {
            // Casts of floats saturate.
            let in_force = column(sample.x) as usize..(column(end).ceil() as usize).min(count);
            for bytes in columns.get_mut(in_force).unwrap_or_default() {
                *bytes = (*bytes).max(sample.reserved);
            }
        }
    }
}

/// Returns the time of the event that leads to a position; `None` at the start, and for traces without times.
fn newest_us(trace: &DeviceTrace, position: u32) -> Option<i64> {
    let last = position.checked_sub(1)?;
    trace.events.time_us.get(last as usize).filter(|time| *time != 0)
}

/// Returns the classes with their bytes at the peak of the run.
fn labelled(scene: Scene<'_>) -> Vec<Class> {
    let Scene { trace, replay, classes, pyramid, .. } = scene;
    let (_, peak) = pyramid.peak(trace, replay, classes, Span { first: 0, last: replay.positions() });
    let bytes = pyramid.composition(trace, replay, classes, peak);
    let with_bytes = |(class, &peak_bytes): (&Class, &u64)| Class { peak_bytes, ..class.clone() };
    classes.classes.iter().zip(&bytes).map(with_bytes).collect()
}

/// Returns the requested heights, and the least height that is drawn as a piece of its own: one pixel row.
fn heights(query: &TimelineQuery) -> (u64, u64, u64) {
    let rows = f64::from(query.rows.clamp(1, MOST_COLUMNS));
    let least = (query.bytes.length() / rows).max(1.0);
    (query.bytes.start.max(0.0) as u64, query.bytes.end.max(0.0).ceil() as u64, least as u64)
}

/// Draws each column as a stack of classes, and adds its active bytes to `active`: one walk finds both.
#[inline(never)]
fn bands(scene: Scene<'_>, query: &TimelineQuery, peaks: &[Option<(u64, u32)>], active: &mut Packed<u64>) -> Quads {
    let Scene { trace, replay, classes, totals, pyramid, .. } = scene;
    let (from, to, least) = heights(query);
    let mut strips = Strips::new(query.bytes.start);
    for peak in peaks {
        if let Some((top, position)) = *peak {
            let mut all = totals.before(replay, position);
            let each = |change| all.apply(change);
            let sums = pyramid.composition_and(trace, replay, classes, position, each);
            active.push(all.active().max(top));
            let mut bottom = 0_u64;
            // The bottom of adjacent classes that are too low to see, which are drawn as one piece.
            let mut small: Option<u64> = None;
            for (i, &bytes) in sums.iter().enumerate() {
                let top = bottom.saturating_add(bytes);
                if bytes >= least {
                    if let Some(small) = small.take() {
                        strips.push_within(small, bottom, from, to, Paint::OTHER, Quads::NONE);
                    }
                    let paint = classes.classes.get(i).map_or(Paint::OTHER, |c| c.paint);
                    strips.push_within(bottom, top, from, to, paint, i as u32);
                } else if bytes > 0 {
                    small = small.or(Some(bottom));
                }
                bottom = top;
            }
            if let Some(small) = small {
                strips.push_within(small, bottom, from, to, Paint::OTHER, Quads::NONE);
            }
        } else {
            active.push(0);
        }
        strips.next_column();
    }
    strips.finish()
}

/// The allocations of a window with their places in the stack: by class, then by age.
struct Places {
    /// The allocation at each place.
    numbers: Vec<u32>,
    /// The place of each allocation that begins in the window, by number from `begun_from` on, or [`NOWHERE`].
    of_begun: Vec<u32>,
    begun_from: u32,
    /// The places of the allocations that are active at the window's first position. Their numbers are lower.
    of_first: FxHashMap<u32, u32>,
}

/// The place of an allocation that is not shown.
const NOWHERE: u32 = u32::MAX;

impl Places {
    /// Gives places to the allocations that are active at the window's first position, and to those that begin in it.
    fn new(classes: &Classes, at_first: &[u32], begun: Range<u32>) -> Self {
        let class = |n: u32| classes.class_of.get(n as usize).copied().unwrap_or(EXCLUDED);
        let seen = at_first.iter().copied().chain(begun.clone());
        let mut numbers: Vec<u32> = seen.filter(|&n| class(n) != EXCLUDED).collect();
        sort_numbers_by_key(&mut numbers, |n| u64::from(class(n)));
        let mut of_begun = vec![NOWHERE; begun.len()];
        let mut of_first = FxHashMap::default();
        for (&number, place) in numbers.iter().zip(0..) {
            match number.checked_sub(begun.start).and_then(|i| of_begun.get_mut(i as usize)) {
                Some(slot) => *slot = place,
                None => drop(of_first.insert(number, place)),
            }
        }
        Self { numbers, of_begun, begun_from: begun.start, of_first }
    }

    /// Returns the place of an allocation, if it is shown.
    fn of(&self, number: u32) -> Option<usize> {
        let place = match number.checked_sub(self.begun_from) {
            Some(i) => self.of_begun.get(i as usize).copied().filter(|place| *place != NOWHERE),
            None => self.of_first.get(&number).copied(),
        };
        place.map(|place| place as usize)
    }

    /// Returns the class of the allocation at a place.
    fn class(&self, classes: &Classes, place: usize) -> Option<u8> {
        classes.class_of.get(*self.numbers.get(place)? as usize).copied()
    }
}

/// Draws each column as a stack of allocations.
#[inline(never)]
fn allocations(scene: Scene<'_>, query: &TimelineQuery, peaks: &[Option<(u64, u32)>]) -> Quads {
    let mut positions = peaks.iter().flatten().map(|p| p.1);
    let Some(first) = positions.next() else { return Quads::default() };
    let mut stacks = Stacks::new(scene, query, first..positions.next_back().unwrap_or(first));
    for peak in peaks {
        if let Some((_, position)) = *peak {
            stacks.column(position);
        }
        stacks.strips.next_column();
    }
    stacks.strips.finish()
}

/// Draws columns, one after the other, as stacks of allocations.
struct Stacks<'a> {
    scene: Scene<'a>,
    /// The requested heights, and the least height of a piece, as [`heights`] returns them.
    heights: (u64, u64, u64),
    places: Places,
    stack: Stack,
    /// The position that the stack shows.
    at: u32,
    /// The colours at each place, computed when it is first drawn.
    colors: Vec<Option<Colors>>,
    strips: Strips,
    pieces: Vec<Piece>,
}

impl<'a> Stacks<'a> {
    fn new(scene: Scene<'a>, query: &TimelineQuery, positions: Range<u32>) -> Self {
        let Scene { replay, classes, .. } = scene;
        let at_first = replay.active_at(positions.start);
        let begun = replay.allocations.made_by(positions.start)..replay.allocations.made_by(positions.end);
        let places = Places::new(classes, &at_first, begun);
        let mut new = Self {
            scene,
            heights: heights(query),
            stack: Stack::new(places.numbers.len()),
            at: positions.start,
            colors: vec![None; places.numbers.len()],
            places,
            strips: Strips::new(query.bytes.start),
            pieces: Vec::new(),
        };
        for number in at_first {
            put(&mut new.stack, &new.places, replay, number);
        }
        new
    }

    /// Draws the stack at a position, which is not before that of the last column. It is called for each column, so that a browser
    /// soon optimizes it.
    #[inline(never)]
    fn column(&mut self, position: u32) {
        let Scene { trace, replay, classes, painter, is_highlighted, .. } = self.scene;
        let Self { places, stack, colors, strips, pieces, at, .. } = self;
        let (begins, ends) = (&replay.allocations.begin, &replay.allocations.end);
        replay.changes(trace, *at, position, |_, change| match change {
            // Allocations that begin and end between two columns are not visible.
            Change::Begin(n) if ends.get(n as usize).is_some_and(|end| end > position) => put(stack, places, replay, n),
            Change::End(n) if begins.get(n as usize).is_some_and(|begin| begin <= *at) => {
                if let Some(place) = places.of(n) {
                    stack.set(place, 0);
                }
            }
            _ => {}
        });
        *at = position;
        let (from, to, least) = self.heights;
        stack.visible((from, to), least, |place| places.class(classes, place), pieces);
        for piece in pieces {
            let (paint, id) = match piece.part {
                Part::Place(place) => {
                    let number = places.numbers.get(place).copied().unwrap_or(Quads::NONE);
                    let look_up = || {
                        let is_faint = is_highlighted && places.class(classes, place).is_some_and(|c| c % 2 == 1);
                        replay.allocations.get(number).map(|a| Colors::of(painter, (number, &a), is_faint))
                    };
                    let known = colors.get_mut(place).and_then(|known| {
                        if known.is_none() {
                            *known = look_up();
                        }
                        known.as_ref()
                    });
                    (known.map_or(Paint::OTHER, |colors| colors.at(position)), number)
                }
                Part::Class(class) => {
                    let class = classes.classes.get(usize::from(class));
                    (class.map_or(Paint::OTHER, |c| c.paint), Quads::NONE)
                }
                Part::Mixed => (Paint::OTHER, Quads::NONE),
            };
            strips.push_within(piece.bottom, piece.top, from, to, paint, id);
        }
    }
}

/// Sets the bytes of an allocation in a stack, if it has a place there.
fn put(stack: &mut Stack, places: &Places, replay: &Replay, number: u32) {
    if let Some(place) = places.of(number) {
        stack.set(place, replay.allocations.requested.get(number as usize).unwrap_or_default());
    }
}

/// The colours of an active allocation: a pending one is drawn differently.
#[derive(Clone)]
struct Colors {
    allocated: Paint,
    pending: Paint,
    /// The positions at which it is allocated.
    held: Range<u32>,
}

impl Colors {
    fn of(painter: &Painter<'_>, (id, allocation): (u32, &Allocation), is_faint: bool) -> Self {
        let faint = |paint: Paint| if is_faint { paint.with(Paint::DIM) } else { paint };
        let (allocated, pending) = (faint(painter.paint(id, allocation)), faint(Paint::PENDING));
        Self { allocated, pending, held: allocation.begin..allocation.freed.min(allocation.end) }
    }

    fn at(&self, position: u32) -> Paint {
        if self.held.contains(&position) { self.allocated } else { self.pending }
    }
}
