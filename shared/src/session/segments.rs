//! The segment map of a position, and the details of one segment.

use std::sync::Arc;

use super::context::Context;
use super::device::Caches;
use crate::analysis::matches::Matches;
use crate::analysis::segment_map::{Part, SegmentMap};
use crate::analysis::segment_order::{GroupKey, Placed, active_bytes, is_pinned};
use crate::analysis::segment_quads::{draw_outline, draw_pins, draw_segment, segment_row};
use crate::frames::StackId;
use crate::query::{
    Answer, ColorBy, Label, Paint, Pin, Quads, SegmentDetail, SegmentGroup, SegmentHeading, SegmentLayout,
    SegmentOrder, Segments, SegmentsQuery, pool_name, stream_name,
};
use crate::replay::AllocatorState;
use crate::units::{Address, Bytes};

/// The number of blocks that pin a segment and are listed.
const PINS: usize = 8;
/// A segment that starts within this many pixels of a row's start begins the row.
const AT_LEFT: f64 = 0.5;
/// Pixels right of a label's text.
const LABEL_MARGIN: f32 = 8.0;

/// Returns the active allocations of a stack's line.
fn of_line(context: Context<'_>, state: &AllocatorState, stack: StackId) -> Matches {
    let line = context.sites.line(stack);
    let stacks = &context.replay.allocations.stack;
    let is_own = |id: &u32| stacks.get(*id as usize).is_some_and(|of| context.sites.line(StackId(of)) == line);
    Matches::of(state.active.iter().copied().filter(is_own), context.replay)
}

/// Answers [`Query::Segments`](crate::query::Query::Segments).
pub(super) fn map(context: Context<'_>, caches: &mut Caches, query: &SegmentsQuery) -> Answer {
    // A map shows all blocks. Those that a filter excludes are faint, like those that a search does not match.
    let filter = caches.terms.all(context, &query.filter);
    let highlight = match (filter, caches.terms.highlight(context, query.highlight.as_deref())) {
        (Ok(Some(filter)), Ok(Some(highlight))) => Some(Arc::new(filter.and(&highlight, context.replay))),
        (Ok(filter), Ok(highlight)) => filter.or(highlight),
        (Err(sentence), _) | (_, Err(sentence)) => return Answer::Refused(sentence),
    };
    let state = caches.states.at(context.replay, query.position);
    let highlight = match query.line {
        Some(stack) => {
            let own = of_line(context, &state, StackId(stack));
            Some(Arc::new(match highlight {
                Some(matches) => matches.and(&own, context.replay),
                None => own,
            }))
        }
        None => highlight,
    };
    let allocations = &context.replay.allocations;
    let size = |id: u32| allocations.size.get(id as usize).unwrap_or(0);
    let needs_active = query.order == SegmentOrder::Free || query.group != SegmentGroup::None;
    let active = if needs_active { active_bytes(&state, size) } else { Vec::new() };
    let placed = Placed::new(&state.ranges, &active, query.order, query.group);
    let extent = (query.width, f64::from(query.height));
    let map = SegmentMap::of(query.layout, &state.ranges, &placed, extent, query.zoom);
    let clip = map.visible(query.visible);
    let painter = context.painter(query.color_by);
    let mut answer = Segments {
        query: query.clone(),
        height: map.height() as f32,
        blocks: Quads::default(),
        outlines: Quads::default(),
        segments: Vec::new(),
        labels: Vec::new(),
        headings: Vec::new(),
        pins: Quads::default(),
        per_byte: map.per_byte(),
        left: map.left() as f32,
        totals: state.totals,
    };
    for (number, group) in placed.groups.iter().enumerate() {
        let Some(y) = map.heading(number, clip) else { continue };
        let GroupKey { pool, stream } = group.key;
        answer.headings.push(SegmentHeading {
            y,
            pool: pool.map(|(pool, _)| pool),
            is_small: pool.is_some_and(|(_, is_small)| is_small),
            stream,
            name: group_name(context, group.key),
            segments: group.segments,
            reserved: group.reserved,
            active: group.active,
        });
    }
    for &i in &placed.order {
        let Some(range) = state.ranges.get(i) else { continue };
        let (start, end) = map.place(i);
        if end <= clip.0 || start >= clip.1 {
            continue;
        }
        let id = answer.segments.len() as u32;
        let row = segment_row(&state, i, range, &painter);
        answer.segments.push(row);
        if is_pinned(range, row.active, state.active_in(i).len()) {
            draw_pins(&mut answer.pins, &map, clip, &state, i, &painter);
        }
        if let Some((from, to)) = map.unmapped_before(i) {
            for part in map.parts(from.max(clip.0), to.min(clip.1)) {
                answer.blocks.push(part.x, part.y, Paint::UNMAPPED, Quads::NONE);
            }
        }
        draw_segment(&mut answer.blocks, &map, clip, &state, i, &painter, highlight.as_deref());
        draw_outline(&mut answer.outlines, &map, clip, i, range, id);
        if map.per_byte().is_some() && map.left() > 0.0 {
            // The address at which a row begins.
            let at_left = |part: &Part| f64::from(part.x.0) <= map.left() + AT_LEFT;
            for part in map.parts(start.max(clip.0), end.min(clip.1)).filter(at_left) {
                let inside = ((map.row_of(part) - start) / (end - start)).max(0.0) * range.size as f64;
                // Blocks begin at multiples of 512 bytes.
                let address = Address(range.address.0.saturating_add(inside as u64 & !511));
                let width = SegmentMap::ADDRESS_WIDTH as f32 - LABEL_MARGIN;
                answer.labels.push(Label { x: 0.0, y: part.y.0, width, text: address.to_string() });
            }
        }
        if let (SegmentLayout::Packed, Some(first)) = (query.layout, map.parts(start, end).next()) {
            answer.labels.push(Label {
                x: 0.0,
                y: first.y.0,
                width: SegmentMap::LABEL_WIDTH as f32 - LABEL_MARGIN,
                text: format!("{} {}", range.address, Bytes(range.size)),
            });
        }
    }
    Answer::Segments(Box::new(answer))
}

/// Names a group: `large pool`, `pool 1, small · stream 3`.
fn group_name(context: Context<'_>, key: GroupKey) -> String {
    let mut names = Vec::new();
    if let Some((pool, is_small)) = key.pool {
        let size = if is_small { "small" } else { "large" };
        let name = pool_name(pool, &context.replay.pools);
        names.push(if pool.is_private() { format!("{name}, {size}") } else { format!("{size} pool") });
    }
    if let Some(stream) = key.stream {
        names.push(stream_name(stream, &context.summary.streams));
    }
    names.join(" · ")
}

/// Answers [`Query::Segment`](crate::query::Query::Segment).
pub(super) fn detail(context: Context<'_>, caches: &mut Caches, address: Address, position: u32) -> Answer {
    let state = caches.states.at(context.replay, position);
    let found = state.ranges.iter().enumerate().find(|(_, range)| range.holds(address.0));
    Answer::Segment(found.map(|(i, range)| {
        let gaps: Vec<u64> = state.gaps_in(i, &context.replay.allocations).map(|gap| gap.size).collect();
        Box::new(SegmentDetail {
            row: segment_row(&state, i, range, &context.painter(ColorBy::Site)),
            blocks: state.active_in(i).len() as u32,
            gaps: gaps.len() as u32,
            largest_gap: gaps.into_iter().max().unwrap_or(0),
            since: (range.since > 0).then_some(range.since),
            frames: context.frames(range.stack),
            missing: (range.stack.0 == 0).then(|| context.missing_text(caches.coverage(context).of(range.since, true))),
            pins: pins(context, &state, i),
        })
    }))
}

/// Returns the active blocks that pin range `i`: the oldest first, since they are the least likely to go soon, and of
/// those the smallest, which pin most with least. A range without gaps has none.
pub(super) fn pins(context: Context<'_>, state: &AllocatorState, i: usize) -> Vec<Pin> {
    let allocations = &context.replay.allocations;
    if state.gaps_in(i, allocations).next().is_none() {
        return Vec::new();
    }
    let blocks = state.active_in(i).iter().filter_map(|&id| Some((id, allocations.get(id)?)));
    let mut blocks: Vec<_> = blocks.map(|(id, block)| (block.begin, block.size, id, block.stack)).collect();
    blocks.sort_unstable();
    blocks.truncate(PINS);
    let pin = |(begin, size, id, stack)| Pin {
        id,
        size,
        since: (begin > 0).then_some(begin),
        site: context.sites.label(stack).to_owned(),
    };
    blocks.into_iter().map(pin).collect()
}
