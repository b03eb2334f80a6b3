//! Arrow keys on the map: to the block beside the selected one, and to the segment before or after.

use query::link::Selection;
use query::{Quads, Segments};

use super::picture::segment_at;
use crate::render::shape::iter;

/// Where an arrow key leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// To the next block; from a segment, to the first one in it or after it.
    NextBlock,
    /// To the previous block; from a segment, to the last one in it or before it.
    PreviousBlock,
    /// To the next segment.
    NextSegment,
    /// To the previous segment.
    PreviousSegment,
}

impl Toward {
    /// Returns where a key leads; `None` if it is no arrow key.
    pub fn of_key(key: &str) -> Option<Self> {
        Some(match key {
            "ArrowRight" => Self::NextBlock,
            "ArrowLeft" => Self::PreviousBlock,
            "ArrowDown" => Self::NextSegment,
            "ArrowUp" => Self::PreviousSegment,
            _ => return None,
        })
    }

    const fn is_forward(self) -> bool {
        matches!(self, Self::NextBlock | Self::NextSegment)
    }
}

/// A place in the map: what is selected there, the number of its segment in the answer, and its upper and lower edge in pixels
/// of the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// What to select.
    pub selection: Selection,
    /// The upper and the lower edge of its first rectangle.
    pub y: (f32, f32),
    segment: u32,
}

/// Returns where an arrow key leads from the selection, in the order in which the map shows segments and blocks. Without a
/// selection in the map, that is the first place below `top`, in pixels of the map. `None` at the end of what the answer has.
pub fn step(map: &Segments, selection: Selection, toward: Toward, top: f32) -> Option<Stop> {
    match toward {
        Toward::NextSegment | Toward::PreviousSegment => {
            let segments = segments(map);
            let here = match selection {
                Selection::Allocation(_) => {
                    blocks(map).iter().find(|stop| stop.selection == selection).map(|stop| stop.segment)
                }
                selection => selected(map, selection),
            };
            let place = |segment| segments.iter().position(|stop| stop.segment == segment);
            beside(&segments, here.and_then(place), toward, top)
        }
        Toward::NextBlock | Toward::PreviousBlock => {
            let blocks = blocks(map);
            if let Some(segment) = selected(map, selection) {
                // Blocks of a small segment may be too small to be drawn by themselves, so others may come first.
                let mut places = vec![usize::MAX; map.segments.len()];
                for (place, stop) in segments(map).iter().enumerate() {
                    if let Some(known) = places.get_mut(stop.segment as usize) {
                        *known = place;
                    }
                }
                let place = |segment: u32| places.get(segment as usize).copied();
                let here = place(segment);
                return match toward.is_forward() {
                    true => blocks.iter().find(|stop| place(stop.segment) >= here),
                    false => blocks.iter().rfind(|stop| place(stop.segment) <= here),
                }
                .copied();
            }
            let here = blocks.iter().position(|stop| stop.selection == selection);
            beside(&blocks, here, toward, top)
        }
    }
}

/// Returns the place beside another one.
fn beside(stops: &[Stop], here: Option<usize>, toward: Toward, top: f32) -> Option<Stop> {
    let place = match here {
        Some(here) if toward.is_forward() => here.checked_add(1)?,
        Some(here) => here.checked_sub(1)?,
        None => stops.iter().position(|stop| stop.y.0 >= top)?,
    };
    stops.get(place).copied()
}

/// Returns the number of the selected segment, if the answer has it.
fn selected(map: &Segments, selection: Selection) -> Option<u32> {
    let Selection::Segment(address) = selection else { return None };
    segment_at(map, address).and_then(|number| u32::try_from(number).ok())
}

/// Returns the segments as the map shows them.
fn segments(map: &Segments) -> Vec<Stop> {
    let mut stops: Vec<Stop> = Vec::new();
    for quad in iter(&map.outlines) {
        // A segment that goes on in the next row is drawn in pieces.
        let is_begun = stops.last().is_some_and(|last| last.segment == quad.id);
        if let Some(row) = map.segments.get(quad.id as usize).filter(|_| !is_begun) {
            stops.push(Stop { selection: Selection::Segment(row.address), y: quad.y, segment: quad.id });
        }
    }
    stops
}

/// Returns the blocks as the map shows them: each once, without those that are too small to be drawn by themselves.
fn blocks(map: &Segments) -> Vec<Stop> {
    let outlines: Vec<_> = iter(&map.outlines).collect();
    let mut stops: Vec<Stop> = Vec::new();
    let mut at = 0;
    for quad in iter(&map.blocks).filter(|quad| quad.id != Quads::NONE) {
        let selection = Selection::Allocation(quad.id);
        if stops.last().is_some_and(|last| last.selection == selection) {
            continue;
        }
        let (x, y) = ((quad.x.0 + quad.x.1) / 2.0, (quad.y.0 + quad.y.1) / 2.0);
        let holds = |edges: (f32, f32), at: f32| edges.0 <= at && at <= edges.1;
        // Blocks and outlines are in the same order.
        let found = outlines.iter().skip(at).position(|outline| holds(outline.y, y) && holds(outline.x, x));
        let Some(further) = found else { continue };
        at += further;
        let Some(segment) = outlines.get(at).map(|outline| outline.id) else { continue };
        stops.push(Stop { selection, y: quad.y, segment });
    }
    stops
}

#[cfg(test)]
mod tests {
    use query::{Paint, SegmentRow};
    use trace::units::{Address, PoolId, Stream};

    use super::Toward::{NextBlock, NextSegment, PreviousBlock, PreviousSegment};
    use super::*;
    use crate::views::segments::picture::tests::map;

    /// Three segments: the first has the blocks 1 and 2, the second goes on in another row with the block 3, and the last one is
    /// free.
    fn three() -> Segments {
        let mut map = map();
        (map.blocks, map.outlines) = (Quads::default(), Quads::default());
        map.outlines.push((0.0, 50.0), (0.0, 20.0), Paint::OTHER, 0);
        map.outlines.push((52.0, 100.0), (0.0, 20.0), Paint::OTHER, 1);
        map.outlines.push((0.0, 30.0), (24.0, 44.0), Paint::OTHER, 1);
        map.outlines.push((0.0, 60.0), (48.0, 68.0), Paint::OTHER, 2);
        map.blocks.push((0.0, 20.0), (0.0, 20.0), Paint::slot(1), 1);
        map.blocks.push((20.0, 30.0), (0.0, 20.0), Paint::CACHED, Quads::NONE);
        map.blocks.push((30.0, 45.0), (0.0, 20.0), Paint::slot(1), 2);
        map.blocks.push((45.0, 50.0), (0.0, 20.0), Paint::ROUNDING, 2);
        map.blocks.push((60.0, 100.0), (0.0, 20.0), Paint::slot(2), 3);
        map.blocks.push((0.0, 30.0), (24.0, 44.0), Paint::slot(2), 3);
        map.blocks.push((0.0, 60.0), (48.0, 68.0), Paint::CACHED, Quads::NONE);
        let row = |address| SegmentRow {
            address: Address(address),
            size: 100,
            active: 0,
            stream: Stream(0),
            pool: PoolId::default(),
            is_small: false,
            is_expandable: false,
        };
        map.segments = vec![row(1000), row(2000), row(3000)];
        map
    }

    #[test]
    fn arrow_keys_walk_through_blocks_and_segments_in_the_order_of_the_map() {
        use Selection::{Allocation, None as Nothing, Segment};
        let map = three();
        let of = |address| Segment(Address(address));
        // From; the key; to.
        let cases = [
            (Nothing, NextBlock, Some(Allocation(1))),
            (Nothing, NextSegment, Some(of(1000))),
            (Allocation(1), NextBlock, Some(Allocation(2))),
            (Allocation(2), NextBlock, Some(Allocation(3))),
            (Allocation(3), NextBlock, None),
            (Allocation(3), PreviousBlock, Some(Allocation(2))),
            (Allocation(1), PreviousBlock, None),
            (Allocation(2), NextSegment, Some(of(2000))),
            (Allocation(3), PreviousSegment, Some(of(1000))),
            (of(1000), NextBlock, Some(Allocation(1))),
            (of(1000), PreviousBlock, Some(Allocation(2))),
            (of(2000), NextSegment, Some(of(3000))),
            (of(3000), PreviousBlock, Some(Allocation(3))),
            (of(3000), NextBlock, None),
            (of(3000), NextSegment, None),
            (of(1000), PreviousSegment, None),
        ];
        for (from, toward, to) in cases {
            assert_eq!(step(&map, from, toward, 0.0).map(|stop| stop.selection), to, "{from:?} {toward:?}");
        }
        // Scrolled past the first row, and what is selected is elsewhere.
        let stop = step(&map, Allocation(99), NextSegment, 30.0).unwrap();
        assert_eq!((stop.selection, stop.y), (of(3000), (48.0, 68.0)));
    }
}
