//! The segment map of a position, and the details of one segment.

use std::sync::Arc;

use super::{Answering, positions, searches};
use crate::caches::Caches;
use crate::context::Context;
use crate::coverage::coverage;
use crate::states::States;
use crate::terms::Terms;
use analysis::matches::Matches;
use analysis::segment_map::SegmentMap;
use analysis::segment_order::{GroupKey, Placed, active_bytes, is_pinned};
use analysis::segment_quads::{draw_outline, draw_pins, draw_segment, segment_row};
use query::{
    ColorBy, DeviceSummary, Label, Paint, Pin, Quads, Sealed, SegmentDetail, SegmentGroup, SegmentHeading,
    SegmentLayout, SegmentOrder, SegmentQuery, Segments, SegmentsQuery, Window, pool_name, stream_name,
};
use replay::{AllocatorState, ReservedRange};
use trace::frames::StackId;
use trace::units::{Address, Bytes};

/// The number of blocks that pin a segment and are listed.
const PINS: usize = 8;
/// Pixels right of a label's text.
const LABEL_MARGIN: f32 = 8.0;

/// Returns the active allocations of a stack's line.
fn of_line(context: Context<'_>, state: &AllocatorState, stack: StackId) -> Matches {
    let line = context.sites.line(stack);
    let stacks = &context.replay.allocations.stack;
    let is_own = |id: &u32| stacks.get(*id as usize).is_some_and(|of| context.sites.line(StackId(of)) == line);
    Matches::of(state.active.iter().copied().filter(is_own), context.replay)
}

impl Answering for SegmentsQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Sealed<Segments>, String> {
        // A map shows all blocks. Those that a filter excludes are faint, like those that a search does not match.
        let filter = caches.of::<Terms>().all(context, &self.filter);
        // A search without a match leaves everything as it is.
        let highlight = caches.of::<Terms>().highlight(context, self.highlight.as_deref());
        let highlight = match (filter, highlight.map(|found| found.filter(|found| found.count > 0))) {
            (Ok(Some(filter)), Ok(Some(highlight))) => Some(Arc::new(filter.and(&highlight, context.replay))),
            (Ok(filter), Ok(highlight)) => filter.or(highlight),
            (Err(sentence), _) | (_, Err(sentence)) => return Err(sentence),
        };
        let state = caches.of::<States>().at(context.replay, self.position);
        let highlight = match self.line {
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
        let needs_active = self.order == SegmentOrder::Free || self.group != SegmentGroup::None;
        let active = if needs_active { active_bytes(&state, size) } else { Vec::new() };
        let placed = Placed::new(&state.ranges, &active, self.order, self.group);
        let extent = (self.width, f64::from(self.height));
        let map = SegmentMap::of(self.layout, &state.ranges, &placed, extent, self.zoom);
        let clip = map.visible(self.visible);
        let painter = context.painter(self.color_by);
        let mut map_of = Segments {
            query: self.clone(),
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
            map_of.headings.push(SegmentHeading {
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
            let id = map_of.segments.len() as u32;
            let row = segment_row(&state, i, range, &painter);
            map_of.segments.push(row);
            if is_pinned(range, row.active, state.active_in(i).len()) {
                draw_pins(&mut map_of.pins, &map, clip, &state, i, &painter);
            }
            if let Some((from, to)) = map.unmapped_before(i) {
                for part in map.parts(from.max(clip.0), to.min(clip.1)) {
                    map_of.blocks.push(part.x, part.y, Paint::UNMAPPED, Quads::NONE);
                }
            }
            draw_segment(&mut map_of.blocks, &map, clip, &state, i, &painter, highlight.as_deref());
            draw_outline(&mut map_of.outlines, &map, clip, i, range, id);
            if map.per_byte().is_some() && map.left() > 0.0 {
                label_rows(&mut map_of.labels, &map, clip, range, (start, end));
            }
            if let (SegmentLayout::Packed, Some(first)) = (self.layout, map.parts(start, end).next()) {
                map_of.labels.push(Label {
                    x: 0.0,
                    y: first.y.0,
                    width: SegmentMap::LABEL_WIDTH as f32 - LABEL_MARGIN,
                    text: format!("{} {}", range.address, Bytes(range.size)),
                });
            }
        }
        Ok(Sealed::new(&map_of))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let visible = Window { start: 0.0, end: 400.0 };
        let plain = |position| Self { position, width: 600.0, height: 300.0, visible, zoom: 1.0, ..Self::default() };
        let mut all: Vec<Self> = positions(device).map(plain).collect();
        for layout in [SegmentLayout::ToScale, SegmentLayout::Packed] {
            for order in [SegmentOrder::Size, SegmentOrder::Stream, SegmentOrder::Free] {
                let group = SegmentGroup::PoolAndStream;
                all.push(Self { layout, order, group, zoom: 2.0, line: Some(1), ..plain(device.events / 2) });
            }
        }
        for (filter, highlight) in searches() {
            all.push(Self { filter, highlight, ..plain(device.peak_position) });
        }
        all
    }
}

/// Labels the rows of a segment to scale: each with the segment at its left end, and how far into it the row begins.
fn label_rows(
    labels: &mut Vec<Label>,
    map: &SegmentMap,
    clip: (f64, f64),
    range: &ReservedRange,
    (start, end): (f64, f64),
) {
    let width = SegmentMap::ADDRESS_WIDTH as f32 - LABEL_MARGIN;
    for part in map.parts(start.max(clip.0), end.min(clip.1)) {
        let y = part.y.0;
        let inside = (map.row_of(part) - start) / (end - start) * range.size as f64;
        let text = match inside as u64 {
            0 => range.address.to_string(),
            inside => format!("{} +{}", range.address, Bytes(inside)),
        };
        if labels.last().is_none_or(|last| last.y != y) {
            labels.push(Label { x: 0.0, y, width, text });
        }
    }
}

/// Names a group: `large pool`, `pool (0, 1), small · stream 3`.
fn group_name(context: Context<'_>, key: GroupKey) -> String {
    let mut names = Vec::new();
    if let Some((pool, is_small)) = key.pool {
        let size = if is_small { "small" } else { "large" };
        let name = pool_name(pool);
        names.push(if pool.is_private() { format!("{name}, {size}") } else { format!("{size} pool") });
    }
    if let Some(stream) = key.stream {
        names.push(stream_name(stream, &context.summary.streams));
    }
    names.join(" · ")
}

impl Answering for SegmentQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Option<Box<SegmentDetail>>, String> {
        let state = caches.of::<States>().at(context.replay, self.position);
        let found = state.ranges.iter().enumerate().find(|(_, range)| range.holds(self.address.0));
        Ok(found.map(|(i, range)| {
            let gaps: Vec<u64> = state.gaps_in(i, &context.replay.allocations).map(|gap| gap.size).collect();
            Box::new(SegmentDetail {
                row: segment_row(&state, i, range, &context.painter(ColorBy::Site)),
                blocks: state.active_in(i).len() as u32,
                gaps: gaps.len() as u32,
                largest_gap: gaps.into_iter().max().unwrap_or(0),
                since: (range.since > 0).then_some(range.since),
                frames: context.frames(range.stack),
                missing: (coverage(context, caches).of_range(context.symbols(), range.stack, range.since))
                    .map(|why| context.missing_text(why)),
                pins: pins(context, &state, i),
            })
        }))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let (address, position) = (Address(0x7f00_0000_0000), device.events / 2);
        [Address(0), address].map(|address| Self { address, position }).into()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use trace::units::{PoolId, Stream};

    #[test]
    fn a_row_is_labelled_with_the_segment_at_its_left_and_how_far_into_it_the_row_begins() {
        let range = |address: u64, size: u64| ReservedRange {
            address: Address(address),
            size,
            stream: Stream::default(),
            pool: PoolId::default(),
            is_small: false,
            is_expandable: false,
            since: 0,
            stack: StackId::default(),
        };
        let ranges = [range(0x1000, 2 << 30), range(1 << 40, 512 << 20)];
        let placed = Placed::new(&ranges, &[], SegmentOrder::Address, SegmentGroup::None);
        let map = SegmentMap::of(SegmentLayout::ToScale, &ranges, &placed, (800.0, 28.0 * 5.0), 1.0);
        let clip = map.visible(Window { start: 0.0, end: 1000.0 });
        let mut labels = Vec::new();
        for (i, range) in ranges.iter().enumerate() {
            label_rows(&mut labels, &map, clip, range, map.place(i));
        }
        let texts: Vec<&str> = labels.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(texts.first(), Some(&"0x1000"));
        assert!(texts[1..].iter().all(|text| text.contains(" +")), "{texts:?}");
        assert!(texts[1].starts_with("0x1000 +"), "the first segment goes on: {texts:?}");
        assert!(texts.last().unwrap().starts_with("0x10000000000 +"), "the second one began in a row: {texts:?}");
        assert!(labels.windows(2).all(|pair| pair[0].y < pair[1].y), "one for each row: {labels:?}");
    }
}
