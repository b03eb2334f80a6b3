//! The segment map's picture: the last answer, scrolled to the current position.

use std::rc::Rc;

use query::link::Selection;
use query::{Answer, Paint, Quads, SegmentHeading, SegmentRow, Segments, Window};
use raster::{Pixels, Shape, Style, Transform};
use trace::units::{Address, Bytes};

use super::ghost::Ghost;
use super::ruler;
use crate::render::canvas::{Picture, Size};
use crate::render::painter::Painter;
use crate::render::palette::Palette;
use crate::render::pick::pick;
use crate::render::shape::{Quad, iter};
use crate::render::surface::{Align, Area, Font, Surface, fit, fit_end};
use crate::widgets::format::{counted, share};

/// Room around the map, in CSS pixels.
pub const MARGIN: f64 = 12.0;
/// Height of the ruler, in CSS pixels.
pub const RULER: f64 = 18.0;
/// The top of the map, in CSS pixels.
pub const TOP: f64 = RULER + 8.0;

/// What is under the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hover {
    /// The block's allocation; `None` in a gap, or where blocks are too small to draw.
    pub allocation: Option<u32>,
    /// The paint drawn there.
    pub paint: Paint,
    /// The neighbours of the gap, if a single gap is drawn there.
    pub gap: Option<GapShape>,
    /// Whether it is one of the blocks that pin a mostly free segment.
    pub is_pin: bool,
    /// The segment.
    pub segment: SegmentRow,
}

/// A drawn gap, described by its neighbours: the allocations of the blocks around it, or `None` at the segment's end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GapShape {
    /// At lower addresses.
    pub before: Option<u32>,
    /// At higher ones.
    pub after: Option<u32>,
}

/// What to draw, as set by the component.
pub struct Scene {
    /// The answer to draw.
    pub answer: Rc<Answer>,
    /// The theme's colours.
    pub palette: Rc<Palette>,
    /// How far down the view is scrolled, in CSS pixels.
    pub scroll: f64,
    /// Whether blocks are coloured by state rather than by class.
    pub by_state: bool,
    /// The selection.
    pub selection: Selection,
    /// The request that failed at the cursor.
    pub ghost: Option<Ghost>,
}

/// The picture of the segment map.
#[derive(Default)]
pub struct SegmentsPicture {
    /// What to draw; `None` until the first answer.
    pub scene: Option<Scene>,
    /// What is under the pointer.
    pub hover: Option<Hover>,
    shapes: Rc<Vec<Shape>>,
    made_of: Option<(Rc<Answer>, Rc<Palette>, bool)>,
    revision: u64,
}

impl Scene {
    /// Returns the answer, if it is a segment map.
    pub fn map(&self) -> Option<&Segments> {
        match self.answer.as_ref() {
            Answer::Segments(map) => Some(map),
            _ => None,
        }
    }

    fn transform(&self, ratio: f64) -> Transform {
        let y = (TOP - self.scroll) * ratio;
        Transform { x: (ratio as f32, (MARGIN * ratio) as f32), y: (ratio as f32, y.round() as f32) }
    }

    /// Returns what is at a point in CSS pixels.
    pub fn at(&self, point: (f64, f64)) -> Option<Hover> {
        let map = self.map()?;
        let transform = self.transform(1.0);
        let (_, outline) = pick(&map.outlines, transform, point, 1.0)?;
        let segment = *map.segments.get(outline.id as usize)?;
        let found = pick(&map.blocks, transform, point, 0.5);
        let gap = found.and_then(|(i, quad)| if quad.paint.base() == Paint::CACHED { gap(map, i) } else { None });
        let block = found.map(|(_, quad)| quad);
        let paint = block.map_or(Paint::CACHED, |quad| quad.paint);
        let allocation = block.map(|quad| quad.id).filter(|id| *id != Quads::NONE);
        let is_pin = allocation.is_some_and(|id| map.pins.id.contains(&id));
        Some(Hover { allocation, paint, gap, is_pin, segment })
    }
}

/// Returns the gap that rectangle `i` is part of. `None` if its neighbours are too small to distinguish, or outside of
/// the requested rows.
fn gap(map: &Segments, i: usize) -> Option<GapShape> {
    Some(GapShape { before: neighbour(map, i, false)?, after: neighbour(map, i, true)? })
}

/// More than the distance of two rows, in pixels.
const ROW_PIXELS: f32 = 30.0;

/// Returns the block next to a gap, or `Some(None)` where its segment ends.
fn neighbour(map: &Segments, gap: usize, is_after: bool) -> Option<Option<u32>> {
    let segment = segment_of(map, gap);
    let mut i = gap;
    loop {
        let next = if is_after { i + 1 } else { i.wrapping_sub(1) };
        if segment_of(map, next) != segment {
            break;
        }
        i = next;
        if map.blocks.paint.get(i).is_some_and(|paint| Paint(*paint).base() != Paint::CACHED) {
            return map.blocks.id.get(i).filter(|id| **id != Quads::NONE).map(|id| Some(*id));
        }
    }
    // In the outermost requested row, the segment may continue in the next one.
    let (top, bottom) = (*map.blocks.y0.get(i)?, *map.blocks.y1.get(i)?);
    let Window { start, end } = map.query.visible;
    let is_end = if is_after {
        bottom < end as f32 - ROW_PIXELS || bottom >= map.height - 1.0
    } else {
        top > start as f32 + ROW_PIXELS || top < 1.0
    };
    is_end.then_some(None)
}

/// Returns the number of the segment that contains a rectangle.
fn segment_of(map: &Segments, block: usize) -> Option<u32> {
    let quads = &map.blocks;
    let x = (quads.x0.get(block)? + quads.x1.get(block)?) / 2.0;
    let y = (quads.y0.get(block)? + quads.y1.get(block)?) / 2.0;
    let holds = |edges: (f32, f32), at: f32| edges.0 <= at && at <= edges.1;
    iter(&map.outlines).find(|outline| holds(outline.x, x) && holds(outline.y, y)).map(|outline| outline.id)
}

/// Returns the shapes of an answer in CSS pixels of the whole map: blocks and gaps, then the outlines of segments.
fn shapes(map: &Segments, palette: &Palette, by_state: bool) -> Vec<Shape> {
    let mut shapes = Vec::with_capacity(map.blocks.len() + map.outlines.len());
    // During a search, and while a line is selected, only matches have their full colour, unless there are none.
    let is_search = map.blocks.paint.iter().any(|paint| Paint(*paint).has(Paint::DIM));
    // A block that continues in the next row has no edge at the end of its row.
    let goes_on = |quads: &Quads, i: usize, quad: &Quad| {
        quads.id.get(i + 1) == Some(&quad.id)
            && quads.paint.get(i + 1) == Some(&quad.paint.0)
            && quads.y0.get(i + 1).is_some_and(|y| *y > quad.y.0)
    };
    for (i, quad) in iter(&map.blocks).enumerate() {
        let mut paint = if by_state { state_of(quad.paint) } else { quad.paint };
        if is_search && (paint.base() == Paint::CACHED || paint.base() == Paint::ROUNDING) {
            paint = paint.with(Paint::DIM);
        }
        // One line between neighbours of one colour is enough to separate them.
        let style = if goes_on(&map.blocks, i, &quad) { Style::PLAIN } else { Style::EDGE_RIGHT };
        shapes.push(palette.shape(quad.x, quad.y, paint, style));
    }
    let mut is_begun = false;
    for (i, quad) in iter(&map.outlines).enumerate() {
        let color = if quad.paint.has(Paint::PRIVATE) { palette.text } else { palette.reserved };
        let goes_on = goes_on(&map.outlines, i, &quad);
        let mut style = Style::HOLLOW.with(Style::VISIBLE).with(Style::EDGE_TOP).with(Style::EDGE_BOTTOM);
        if !is_begun {
            style = style.with(Style::EDGE_LEFT);
        }
        if !goes_on {
            style = style.with(Style::EDGE_RIGHT);
        }
        is_begun = goes_on;
        shapes.push(Shape { style, ..Shape::plain(quad.x, quad.y, color.pixel()) });
    }
    shapes
}

/// Returns the paint of a block's state: all allocated blocks get one colour.
fn state_of(paint: Paint) -> Paint {
    let is_state = paint.base().0 > Paint::ALLOCATED.0;
    if is_state { paint } else { Paint(Paint::ALLOCATED.0 | (paint.0 & (Paint::DIM | Paint::PRIVATE))) }
}

impl Picture for SegmentsPicture {
    fn draw(&mut self, painter: &mut dyn Painter, surface: &mut dyn Surface, size: Size) -> bool {
        let Some(scene) = &self.scene else { return true };
        let Some(map) = scene.map() else { return true };
        let is_made = self.made_of.as_ref().is_some_and(|(answer, palette, by_state)| {
            Rc::ptr_eq(answer, &scene.answer) && Rc::ptr_eq(palette, &scene.palette) && *by_state == scene.by_state
        });
        if !is_made {
            self.shapes = Rc::new(shapes(map, &scene.palette, scene.by_state));
            self.made_of = Some((Rc::clone(&scene.answer), Rc::clone(&scene.palette), scene.by_state));
            self.revision += 1;
        }
        if painter.revision() != self.revision {
            painter.set_shapes(&self.shapes, self.revision);
        }
        let (width, height) = size.device();
        let clip = Pixels { x0: 0, y0: 0, x1: width as i32, y1: height as i32 };
        if !painter.paint(scene.palette.background, scene.transform(size.ratio), clip) {
            return false;
        }
        over(surface, scene, map, self.hover, size);
        true
    }
}

/// Draws labels, and outlines around what is under the pointer and what is selected.
fn over(surface: &mut dyn Surface, scene: &Scene, map: &Segments, hover: Option<Hover>, size: Size) {
    let palette = &scene.palette;
    let top = TOP - scene.scroll;
    // The size matters most, and the end of an address distinguishes it from its neighbours.
    let labels: Vec<_> = map
        .labels
        .iter()
        .map(|label| {
            let (address, size) = label.text.split_once(' ').unwrap_or((&label.text, ""));
            let room = f64::from(label.width) - surface.text_width(size, Font::Label) - 10.0;
            (label, size, address, fit_end(surface, address, Font::Label, room))
        })
        .collect();
    // Of all that are shortened, as much is left: so it is seen which are the same.
    let ends = labels.iter().filter_map(|label| label.3.as_deref()?.strip_prefix('…'));
    let least = ends.map(str::len).min().unwrap_or_default();
    for (label, bytes, address, text) in labels {
        let y = f64::from(label.y) + top + 10.0;
        if y < -10.0 || y > size.height + 10.0 {
            continue;
        }
        let (left, right) = (f64::from(label.x) + MARGIN, f64::from(label.x + label.width) + MARGIN);
        surface.text(bytes, (right, y), Align::End, Font::Label, palette.text.into());
        if let Some(text) = text {
            let end = address.get(address.len().saturating_sub(least)..).filter(|_| text.starts_with('…'));
            let text = end.map_or(text, |end| format!("…{end}"));
            surface.text(&text, (left, y), Align::Start, Font::Label, palette.text_dim.into());
        }
    }
    for heading in &map.headings {
        let y = f64::from(heading.y) + top + 12.0;
        if y < -12.0 || y > size.height + 12.0 {
            continue;
        }
        surface.text(&heading.name, (MARGIN, y), Align::Start, Font::Strong, palette.text.into());
        let from = MARGIN + surface.text_width(&heading.name, Font::Strong) + 12.0;
        let sums = heading_sums(heading);
        if let Some(sums) = fit(surface, &sums, Font::Label, size.width - MARGIN - from) {
            surface.text(&sums, (from, y), Align::Start, Font::Label, palette.text_dim.into());
        }
    }
    let area = |x: (f32, f32), y: (f32, f32)| {
        let (x0, x1) = (f64::from(x.0) + MARGIN, f64::from(x.1) + MARGIN);
        let (y0, y1) = (f64::from(y.0) + top, f64::from(y.1) + top);
        Area { x: x0, y: y0, width: (x1 - x0).max(3.0), height: y1 - y0 }
    };
    for quad in iter(&map.pins) {
        let pin = area(quad.x, quad.y);
        // The outline is around the block, so that it is visible even if the block is thinner.
        let wide = Area { x: pin.x - 1.0, y: pin.y - 1.0, width: pin.width + 2.0, height: pin.height + 2.0 };
        surface.outline(wide, 1.0, palette.text.into());
    }
    if let Some(id) = hover.and_then(|hover| hover.allocation) {
        for quad in iter(&map.blocks).filter(|quad| quad.id == id) {
            surface.fill(area(quad.x, quad.y), palette.text.at(0.22));
        }
    }
    if let Some(Hover { segment, .. }) = hover {
        let number = map.segments.iter().position(|row| row.address == segment.address);
        for quad in iter(&map.outlines).filter(|quad| number == Some(quad.id as usize)) {
            surface.outline(area(quad.x, quad.y), 1.0, palette.text.at(0.7));
        }
    }
    if let Some(ghost) = scene.ghost {
        // Below the ruler.
        let bounds = Area { x: MARGIN, y: RULER, width: size.width - 2.0 * MARGIN, height: size.height - RULER };
        ghost.draw(surface, map, (top, bounds), palette);
    }
    let mut frame = |area: Area| {
        let wide = Area { x: area.x - 2.0, y: area.y - 2.0, width: area.width + 4.0, height: area.height + 4.0 };
        surface.outline(wide, 2.0, palette.text.into());
    };
    match scene.selection {
        Selection::Allocation(id) => {
            for quad in iter(&map.blocks).filter(|quad| quad.id == id) {
                frame(area(quad.x, quad.y));
            }
        }
        Selection::Segment(address) => {
            let number = segment_at(map, address);
            for quad in iter(&map.outlines).filter(|quad| number == Some(quad.id as usize)) {
                frame(area(quad.x, quad.y));
            }
        }
        _ => {}
    }
    let looked_at = hover.map(|hover| hover.segment).or_else(|| selected_row(map, scene.selection));
    ruler::draw(surface, map, looked_at.as_ref(), size, palette);
}

/// Returns the selected segment, if it is visible.
fn selected_row(map: &Segments, selection: Selection) -> Option<SegmentRow> {
    let Selection::Segment(address) = selection else { return None };
    segment_at(map, address).and_then(|number| map.segments.get(number)).copied()
}

/// Returns the number of the segment that has an address, if the answer has it.
pub fn segment_at(map: &Segments, address: Address) -> Option<usize> {
    map.segments.iter().position(|row| address >= row.address && address.0 - row.address.0 < row.size.max(1))
}

/// Formats the sums of a group: `12 segments · 3.2 GiB · 45 % free`.
fn heading_sums(heading: &SegmentHeading) -> String {
    let free = heading.reserved.saturating_sub(heading.active);
    let (segments, reserved) = (counted(heading.segments.into(), "segment"), Bytes(heading.reserved));
    format!("{segments} · {reserved} · {} free", share(free, heading.reserved))
}

#[cfg(test)]
pub(super) mod tests {
    use query::diagnosis::FailedRequest;
    use query::{ColorBy, Label, Sealed, SegmentLayout, SegmentsQuery};
    use trace::totals::Totals;
    use trace::units::{PoolId, Stream};

    use super::*;
    use crate::render::surface::log::SurfaceLog;

    pub(in super::super) fn map() -> Segments {
        scene(Selection::None).map().expect("a map").clone()
    }

    fn scene(selection: Selection) -> Scene {
        let (mut blocks, mut outlines) = (Quads::default(), Quads::default());
        blocks.push((0.0, 50.0), (0.0, 20.0), Paint::slot(4), 3);
        blocks.push((50.0, 60.0), (0.0, 20.0), Paint::PENDING, 4);
        blocks.push((60.0, 100.0), (0.0, 20.0), Paint::CACHED, Quads::NONE);
        outlines.push((0.0, 100.0), (0.0, 20.0), Paint::OTHER, 0);
        let row = SegmentRow {
            address: Address(4096),
            size: 2048,
            active: 1200,
            stream: Stream(0),
            pool: PoolId::default(),
            is_small: true,
            is_expandable: false,
        };
        let map = Segments {
            query: SegmentsQuery {
                position: 0,
                layout: SegmentLayout::Packed,
                width: 100.0,
                height: 50.0,
                visible: Window { start: 0.0, end: 50.0 },
                zoom: 1.0,
                color_by: ColorBy::Site,
                filter: Vec::new(),
                highlight: None,
                line: None,
                ..SegmentsQuery::default()
            },
            height: 20.0,
            blocks,
            outlines,
            segments: vec![row],
            labels: vec![Label { x: 0.0, y: 0.0, width: 140.0, text: "0x1000 2.00 KiB".to_owned() }],
            headings: Vec::new(),
            pins: Quads::default(),
            per_byte: None,
            left: 148.0,
            totals: Totals::default(),
        };
        Scene {
            answer: Rc::new(Answer::Segments(Sealed::new(&map))),
            palette: Rc::new(Palette::light()),
            scroll: 0.0,
            by_state: true,
            selection,
            ghost: None,
        }
    }

    #[test]
    fn points_pick_blocks_gaps_and_nothing() {
        let scene = scene(Selection::None);
        let at = |x, y| scene.at((x + MARGIN, y + TOP)).map(|hover| (hover.allocation, hover.paint));
        assert_eq!(at(10.0, 5.0), Some((Some(3), Paint::slot(4))));
        assert_eq!(at(55.0, 5.0), Some((Some(4), Paint::PENDING)));
        assert_eq!(at(80.0, 5.0), Some((None, Paint::CACHED)));
        assert_eq!(at(80.0, 30.0), None);
        let gap = |x| scene.at((x + MARGIN, 5.0 + TOP)).and_then(|hover| hover.gap);
        assert_eq!(gap(80.0), Some(GapShape { before: Some(4), after: None }));
        assert_eq!(gap(55.0), None);
    }

    #[test]
    fn a_block_that_continues_in_the_next_row_has_no_edge() {
        let scene = scene(Selection::None);
        let mut map = scene.map().unwrap().clone();
        map.height = 48.0;
        map.outlines.push((0.0, 30.0), (28.0, 48.0), Paint::OTHER, 0);
        map.blocks.push((0.0, 30.0), (28.0, 48.0), Paint::CACHED, Quads::NONE);
        let shapes = shapes(&map, &scene.palette, true);
        let sides = |shape: &Shape| shape.style.0 & (Style::EDGE_LEFT.0 | Style::EDGE_RIGHT.0);
        let outlines: Vec<u32> = shapes.iter().filter(|s| s.style.has(Style::HOLLOW)).map(sides).collect();
        assert_eq!(outlines, [Style::EDGE_LEFT.0, Style::EDGE_RIGHT.0]);
        let blocks: Vec<u32> = shapes.iter().filter(|s| !s.style.has(Style::HOLLOW)).map(sides).collect();
        assert_eq!(blocks, [4, 4, 0, 4]);
        assert_eq!(gap(&map, 3), Some(GapShape { before: Some(4), after: None }));
        map.height = 1000.0;
        assert_eq!(gap(&map, 3), None, "it may go on below");
    }

    #[test]
    fn by_state_call_sites_are_one_colour_and_states_stay_apart() {
        assert_eq!(state_of(Paint::slot(3).with(Paint::PRIVATE)), Paint::ALLOCATED.with(Paint::PRIVATE));
        assert_eq!(state_of(Paint::OTHER), Paint::ALLOCATED);
        assert_eq!(state_of(Paint::ramp(3).with(Paint::DIM)), Paint::ALLOCATED.with(Paint::DIM));
        for paint in [Paint::PENDING, Paint::CACHED, Paint::ROUNDING, Paint::UNMAPPED] {
            assert_eq!(state_of(paint), paint);
        }
    }

    #[test]
    fn a_failed_request_is_outlined_over_the_nearest_gap() {
        let failure = FailedRequest {
            requested: 1024,
            nearest_gap: Some((Address(4096 + 1024 + 512), 512)),
            ..FailedRequest::default()
        };
        let mut map = to_scale(100.0);
        map.height = 20.0;
        let answer = Rc::new(Answer::Segments(Sealed::new(&map)));
        let scene = Scene { answer, ghost: Ghost::new(&failure), ..scene(Selection::None) };
        let mut log = SurfaceLog::default();
        let size = Size { width: 424.0 + 2.0 * MARGIN, height: 100.0, ratio: 1.0 };
        over(&mut log, &scene, scene.map().unwrap(), None, size);
        let red = Palette::light().oom.css();
        assert!(log.0.contains(&format!("outline 87,24 50x24 by 2 {red}")), "to scale: {:#?}", log.0);
        assert!(log.0.iter().any(|line| line.contains("\"needs 1.00 KiB, gap 512 B\"")), "{:#?}", log.0);
    }

    /// Returns the map with its segment of 2048 bytes as long as this many pixels.
    fn to_scale(pixels: f64) -> Segments {
        Segments { per_byte: Some(pixels / 2048.0), left: 0.0, ..map() }
    }

    /// Draws a request on a map, and returns its outlines and its words.
    fn ghost_on(map: &Segments, requested: u64, gap: (u64, u64), width: f64) -> (Vec<String>, Vec<String>) {
        let nearest_gap = Some((Address(4096 + gap.0), gap.1));
        let failure = FailedRequest { requested, nearest_gap, ..FailedRequest::default() };
        let bounds = Area { x: MARGIN, y: RULER, width, height: 300.0 };
        let mut log = SurfaceLog::default();
        Ghost::new(&failure).unwrap().draw(&mut log, map, (40.0, bounds), &Palette::light());
        let of = |kind: &str, no: &str| -> Vec<String> {
            log.0.iter().filter(|line| line.starts_with(kind) && !line.contains(no)).cloned().collect()
        };
        (of("outline", "by 1 "), of("text", "\n"))
    }

    #[test]
    fn a_failed_request_goes_on_in_the_next_row_of_its_segment() {
        let mut map = to_scale(160.0);
        map.height = 50.0;
        map.outlines.push((0.0, 60.0), (30.0, 50.0), Paint::OTHER, 0);
        let (outlines, words) = ghost_on(&map, 256, (1152, 128), 100.0);
        let red = Palette::light().oom.css();
        let at = |x: f64| x + MARGIN;
        let wanted =
            [format!("outline {},38 10x24 by 2 {red}", at(90.0)), format!("outline {},68 10x24 by 2 {red}", at(0.0))];
        assert_eq!(outlines, wanted);
        assert_eq!(words, [""; 0], "there is no room for its words");
        let (_, words) = ghost_on(&map, 256, (1152, 128), 400.0);
        assert!(words[0].starts_with("text \"needs 256 B, gap 128 B\""), "{words:?}");
    }

    #[test]
    fn a_failed_request_that_is_longer_than_its_row_goes_to_its_end() {
        let map = to_scale(100.0);
        let (outlines, _) = ghost_on(&map, 1 << 20, (1536, 512), 400.0);
        let red = Palette::light().oom.css();
        assert_eq!(outlines, [format!("outline {},38 325x24 by 2 {red}", 75.0 + MARGIN)]);
    }

    #[test]
    fn a_gap_in_a_segment_that_begins_above_the_view_is_where_it_was() {
        // Ten rows of 100 pixels; the answer has the last two.
        let mut map = to_scale(1000.0);
        (map.height, map.outlines, map.blocks) = (300.0, Quads::default(), Quads::default());
        map.outlines.push((0.0, 100.0), (224.0, 244.0), Paint::OTHER, 0);
        map.outlines.push((0.0, 100.0), (252.0, 272.0), Paint::OTHER, 0);
        let gap = 2048 * 85 / 100;
        let (outlines, _) = ghost_on(&map, 2048 / 50, (gap, 16), 100.0);
        let red = Palette::light().oom.css();
        assert_eq!(outlines, [format!("outline {},262 20x24 by 2 {red}", 50.0 + MARGIN)]);
        assert_eq!(ghost_on(&map, 40, (64, 16), 100.0).0, [""; 0], "it is out of view");
    }

    #[test]
    fn headings_and_pins_are_drawn() {
        let mut map = map();
        map.pins.push((50.0, 50.5), (0.0, 20.0), Paint::OTHER, 4);
        map.headings.push(SegmentHeading {
            y: 24.0,
            pool: None,
            is_small: false,
            stream: None,
            name: "large pool".to_owned(),
            segments: 2,
            reserved: 4096,
            active: 1024,
        });
        let scene = Scene { answer: Rc::new(Answer::Segments(Sealed::new(&map))), ..scene(Selection::None) };
        let mut log = SurfaceLog::default();
        over(&mut log, &scene, scene.map().unwrap(), None, Size { width: 400.0, height: 100.0, ratio: 1.0 });
        assert!(log.0.iter().any(|line| line.contains("\"large pool\" at 12,62")), "{:#?}", log.0);
        assert!(log.0.iter().any(|line| line.contains("\"2 segments · 4.00 KiB · 75.0 % free\"")), "{:#?}", log.0);
        assert!(log.0.contains(&format!("outline 61,25 5x22 by 1 {}", Palette::light().text.css())), "{:#?}", log.0);
        assert!(scene.at((55.0 + MARGIN, 5.0 + TOP)).is_some_and(|hover| hover.is_pin));
    }

    #[test]
    fn the_selection_is_outlined() {
        let frames = |selection| {
            let scene = scene(selection);
            let mut log = SurfaceLog::default();
            let size = Size { width: 200.0, height: 100.0, ratio: 1.0 };
            over(&mut log, &scene, scene.map().unwrap(), None, size);
            log.0.into_iter().filter(|line| line.starts_with("outline")).collect::<Vec<_>>()
        };
        let ink = Palette::light().text.css();
        assert_eq!(frames(Selection::Allocation(3)), [format!("outline 10,24 54x24 by 2 {ink}")]);
        assert_eq!(frames(Selection::Segment(Address(5000))), [format!("outline 10,24 104x24 by 2 {ink}")]);
        assert_eq!(frames(Selection::Segment(Address(9000))), [""; 0]);
    }
}
