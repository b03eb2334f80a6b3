//! The blocks of a segment map as quads. Their number is bounded by the pixels, and each kind of memory keeps its
//! share.
//!
//! Blocks narrower than a pixel are gathered until they fill one. They are drawn as one quad for each kind of memory,
//! as wide as the memory that it represents: a pixel full of tiny blocks shows how much of it is cached.

use super::matches::Matches;
use super::paint::Painter;
use super::segment_map::SegmentMap;
use query::{Paint, Quads, SegmentRow};
use replay::{Allocation, AllocatorState, ReservedRange};

/// The use of a part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Active = 0,
    Pending = 1,
    Rounding = 2,
    Cached = 3,
}

impl PieceKind {
    const ALL: [Self; 4] = [Self::Active, Self::Pending, Self::Rounding, Self::Cached];

    /// Returns the colour of gathered blocks of this kind.
    const fn paint(self) -> Paint {
        match self {
            Self::Active => Paint::OTHER,
            Self::Pending => Paint::PENDING,
            Self::Rounding => Paint::ROUNDING,
            Self::Cached => Paint::CACHED,
        }
    }
}

/// A span of the map's line.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: f64,
    end: f64,
    kind: PieceKind,
    paint: Paint,
    id: u32,
}

/// Draws the visible blocks and gaps of segment `i`.
pub fn draw_segment(
    quads: &mut Quads,
    map: &SegmentMap,
    clip: (f64, f64),
    state: &AllocatorState,
    i: usize,
    painter: &Painter<'_>,
    highlight: Option<&Matches>,
) {
    let Some(range) = state.ranges.get(i).filter(|range| range.size > 0) else { return };
    let (start, end) = map.place(i);
    let per_byte = (end - start) / range.size as f64;
    // Addresses beyond the range, which only a damaged file has, are moved to its end.
    let at = |address: u64| {
        if address >= range.end() { end } else { start + address.saturating_sub(range.address.0) as f64 * per_byte }
    };
    let flags = if range.pool.is_private() { Paint::PRIVATE } else { 0 };
    let mut drawing = Drawing { quads, map, clip, flags, gathered: GatheredPieces::default() };
    let allocations = &painter.replay.allocations;
    let active = state.active_in(i);
    let block_end = |id: &u32| {
        let size = allocations.size.get(*id as usize).unwrap_or(0);
        allocations.address.get(*id as usize).unwrap_or(0).saturating_add(size)
    };
    // Blocks before the visible part are skipped in one step; those after it are not visited.
    let first = active.partition_point(|id| at(block_end(id)) < clip.0);
    let mut done = first.checked_sub(1).and_then(|i| active.get(i)).map_or(range.address.0, block_end);
    for (id, block) in active.iter().skip(first).filter_map(|&id| Some((id, allocations.get(id)?))) {
        if at(done) > clip.1 {
            break;
        }
        drawing.gap(at(done), at(block.address.0));
        let block_end = block.address.0.saturating_add(block.size);
        let requested_end = block.address.0.saturating_add(block.requested.min(block.size));
        let is_lit = highlight.is_none_or(|matches| matches.contains(id));
        let (kind, paint) = kind_of((id, &block), state.position, painter);
        let paint = if is_lit { paint } else { paint.with(Paint::DIM) };
        let (from, to) = (at(block.address.0.max(done)), at(block_end));
        // Rounding too thin to be visible is drawn as a part of its block.
        let cut = if to - at(requested_end) >= 1.0 { at(requested_end).max(from) } else { to };
        drawing.piece(Piece { start: from, end: cut, kind, paint, id });
        let paint = Paint::ROUNDING.with(flags | paint.0 & Paint::DIM);
        drawing.piece(Piece { start: cut, end: to, kind: PieceKind::Rounding, paint, id });
        done = done.max(block_end);
    }
    if at(done) <= clip.1 {
        drawing.gap(at(done), end);
    }
    drawing.flush();
}

fn kind_of((id, block): (u32, &Allocation), position: u32, painter: &Painter<'_>) -> (PieceKind, Paint) {
    let paint = painter.paint(id, block);
    if block.is_allocated_at(position) {
        (PieceKind::Active, paint)
    } else {
        (PieceKind::Pending, Paint::PENDING.with(paint.0 & Paint::PRIVATE))
    }
}

/// Draws a segment's outline: one quad for each of its rows.
pub fn draw_outline(quads: &mut Quads, map: &SegmentMap, clip: (f64, f64), i: usize, range: &ReservedRange, id: u32) {
    let (start, end) = map.place(i);
    let paint = if range.pool.is_private() { Paint::OTHER.with(Paint::PRIVATE) } else { Paint::OTHER };
    for part in map.parts(start.max(clip.0), end.min(clip.1)) {
        quads.push(part.x, part.y, paint, id);
    }
}

/// Draws the blocks that pin range `i`. The id of each quad is the number of its allocation.
pub fn draw_pins(
    quads: &mut Quads,
    map: &SegmentMap,
    clip: (f64, f64),
    state: &AllocatorState,
    i: usize,
    painter: &Painter<'_>,
) {
    let Some(range) = state.ranges.get(i) else { return };
    let (start, end) = map.place(i);
    let per_byte = (end - start) / range.size.max(1) as f64;
    let at = |address: u64| start + address.saturating_sub(range.address.0) as f64 * per_byte;
    let allocations = &painter.replay.allocations;
    for (id, block) in state.active_in(i).iter().filter_map(|&id| Some((id, allocations.get(id)?))) {
        let (from, to) = (at(block.address.0), at(block.address.0.saturating_add(block.size)));
        for part in map.parts(from.max(clip.0), to.min(clip.1)) {
            quads.push(part.x, part.y, Paint::OTHER, id);
        }
    }
}

/// Returns the list row of range `i`.
pub fn segment_row(state: &AllocatorState, i: usize, range: &ReservedRange, painter: &Painter<'_>) -> SegmentRow {
    let size = |id: &u32| painter.replay.allocations.size.get(*id as usize).unwrap_or(0);
    SegmentRow {
        address: range.address,
        size: range.size,
        active: state.active_in(i).iter().map(size).fold(0, u64::saturating_add),
        stream: range.stream,
        pool: range.pool,
        is_small: range.is_small,
        is_expandable: range.is_expandable,
    }
}

/// Adjacent pieces, each narrower than a pixel.
#[derive(Default)]
struct GatheredPieces {
    first: Option<Piece>,
    end: f64,
    count: u32,
    /// Pixels by [`PieceKind`].
    widths: [f64; 4],
    is_lit: bool,
}

struct Drawing<'a> {
    quads: &'a mut Quads,
    map: &'a SegmentMap,
    clip: (f64, f64),
    /// The flags of every quad of the segment.
    flags: u16,
    gathered: GatheredPieces,
}

impl Drawing<'_> {
    fn gap(&mut self, start: f64, end: f64) {
        let paint = Paint::CACHED.with(self.flags);
        self.piece(Piece { start, end, kind: PieceKind::Cached, paint, id: Quads::NONE });
    }

    fn piece(&mut self, piece: Piece) {
        let width = piece.end - piece.start;
        // Also holds if a damaged file's blocks overlap.
        if width <= 0.0 {
            return;
        }
        if width >= 1.0 {
            self.flush();
            return self.emit(piece);
        }
        let gathered = &mut self.gathered;
        let start = gathered.first.get_or_insert(piece).start;
        gathered.end = piece.end;
        gathered.count += 1;
        gathered.is_lit |= piece.kind == PieceKind::Active && !piece.paint.has(Paint::DIM);
        if let Some(sum) = gathered.widths.get_mut(piece.kind as usize) {
            *sum += width;
        }
        if piece.end - start >= 1.0 {
            self.flush();
        }
    }

    /// Draws the gathered pieces.
    fn flush(&mut self) {
        let gathered = std::mem::take(&mut self.gathered);
        let Some(first) = gathered.first else { return };
        if gathered.count == 1 {
            return self.emit(first);
        }
        let mut start = first.start;
        let last = PieceKind::ALL.into_iter().rfind(|kind| gathered.widths[*kind as usize] > 0.0);
        for kind in PieceKind::ALL {
            let width = gathered.widths[kind as usize];
            if width <= 0.0 {
                continue;
            }
            // The last one ends exactly where the gathered pieces do: pieces tile their segment.
            let end = if Some(kind) == last { gathered.end } else { start + width };
            let dim = if kind == PieceKind::Active && !gathered.is_lit { Paint::DIM } else { 0 };
            let paint = kind.paint().with(self.flags | dim);
            self.emit(Piece { start, end, kind, paint, id: Quads::NONE });
            start = end;
        }
    }

    fn emit(&mut self, piece: Piece) {
        for part in self.map.parts(piece.start.max(self.clip.0), piece.end.min(self.clip.1)) {
            self.quads.push(part.x, part.y, piece.paint, piece.id);
        }
    }
}
