//! The layout of the segment map, in pixels.
//!
//! Both layouts are a line of pixels, folded into rows. To scale, all segments lie on the line one after the other.
//! Packed, each segment begins a row and is as long as a row, or as several when it is magnified. The heading of a group
//! takes a row of its own in both.

use super::segment_order::Placed;
use query::{SegmentLayout, SegmentsQuery, Window};
use replay::ReservedRange;
use trace::order::Within;

/// Pixels between two segments side by side.
const SPACE: f64 = 2.0;
/// Pixels for unmapped address space between two mapped ranges. It is not to scale, as it would fill the view.
const UNMAPPED: f64 = 12.0;
/// The least visible width of a segment.
const LEAST: f64 = 2.0;
/// The largest width and height of a view: more than any screen has.
const MOST_PIXELS: f64 = 65_536.0;

/// The height of a row and the distance between rows, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rows {
    height: f64,
    pitch: f64,
    /// The x coordinate at which rows begin, right of the labels.
    left: f64,
}

impl Rows {
    const TO_SCALE: Self = Self { height: 22.0, pitch: 28.0, left: 0.0 };
    /// With room for the address at which each row begins.
    const TO_SCALE_LABELLED: Self = Self { left: SegmentMap::ADDRESS_WIDTH, ..Self::TO_SCALE };
    const PACKED: Self = Self { height: 20.0, pitch: 24.0, left: SegmentMap::LABEL_WIDTH };
}

/// The places of all segments.
#[derive(Clone, Debug)]
pub struct SegmentMap {
    rows: Rows,
    /// Pixels in a row.
    row_width: f64,
    /// The start and end of each segment on the line.
    places: Vec<(f64, f64)>,
    /// Whether unmapped address space lies before each segment.
    after_unmapped: Vec<bool>,
    /// Where the heading of each group starts on the line.
    headings: Vec<f64>,
    /// The end of the last segment on the line.
    end: f64,
    /// Pixels per byte, if all segments have the same scale.
    per_byte: Option<f64>,
}

/// A part of a segment in one row, in pixels of the whole layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Left and right edge.
    pub x: (f32, f32),
    /// Top and bottom edge.
    pub y: (f32, f32),
}

impl SegmentMap {
    /// Width of the column of labels in the packed layout, in pixels.
    pub const LABEL_WIDTH: f64 = 148.0;

    /// Width of the column of addresses in the layout to scale, in pixels.
    pub const ADDRESS_WIDTH: f64 = 148.0;
    /// The smallest width of a view with this column, in pixels.
    const LEAST_LABELLED: f32 = 560.0;

    /// Lays out the reserved ranges for a view of `width` by `height` pixels.
    pub fn of(
        layout: SegmentLayout,
        ranges: &[ReservedRange],
        placed: &Placed,
        (width, height): (f32, f64),
        zoom: f32,
    ) -> Self {
        let rows = match layout {
            SegmentLayout::ToScale if width >= Self::LEAST_LABELLED => Rows::TO_SCALE_LABELLED,
            SegmentLayout::ToScale => Rows::TO_SCALE,
            SegmentLayout::Packed => Rows::PACKED,
        };
        // If width or zoom is not a number, `max` returns the other operand.
        let row_width = (f64::from(width) - rows.left).max(1.0).within(1.0, MOST_PIXELS);
        let zoom = f64::from(zoom.max(1.0)).within(1.0, SegmentsQuery::MOST_ZOOM.into());
        let mut map = Self {
            rows,
            row_width,
            places: vec![(0.0, 0.0); ranges.len()],
            after_unmapped: vec![false; ranges.len()],
            headings: Vec::with_capacity(placed.groups.len()),
            end: 0.0,
            per_byte: None,
        };
        if layout == SegmentLayout::ToScale {
            for (&next, &before) in placed.order.iter().skip(1).zip(&placed.order) {
                if let (Some(range), Some(last), Some(is_after)) =
                    (ranges.get(next), ranges.get(before), map.after_unmapped.get_mut(next))
                {
                    *is_after = next == before + 1 && is_apart(last, range);
                }
            }
            let unmapped = map.after_unmapped.iter().filter(|is_after| **is_after).count() as f64;
            // A heading takes a row, and half a row before it stays empty on average.
            let between = unmapped * (UNMAPPED + SPACE) + placed.groups.len() as f64 * 1.5 * row_width;
            let height = height.max(0.0).within(0.0, MOST_PIXELS);
            let sizes: Vec<u64> = ranges.iter().map(|range| range.size).collect();
            map.per_byte = Some(pixels_per_byte(&sizes, row_width, height, rows, between) * zoom);
        }
        map.place_all(ranges, placed, row_width * zoom);
        map
    }

    /// Places the segments in their order. A packed segment is `packed` pixels long.
    fn place_all(&mut self, ranges: &[ReservedRange], placed: &Placed, packed: f64) {
        let row_width = self.row_width;
        let mut groups = placed.groups.iter().peekable();
        let mut at = 0.0;
        for (place, &i) in placed.order.iter().enumerate() {
            let (Some(range), Some(is_after)) = (ranges.get(i), self.after_unmapped.get_mut(i)) else { continue };
            if groups.next_if(|group| group.first == place).is_some() {
                at = (at / row_width).ceil() * row_width;
                self.headings.push(at);
                at += row_width;
                *is_after = false;
            }
            let length = self.per_byte.map_or(packed, |per_byte| (range.size as f64 * per_byte).max(LEAST));
            if *is_after {
                at += UNMAPPED + SPACE;
            }
            if let Some(span) = self.places.get_mut(i) {
                *span = (at, at + length);
            }
            self.end = at + length;
            at = match self.per_byte {
                Some(_) => self.end + SPACE,
                // A packed segment begins a row.
                None => at + (length / row_width).ceil() * row_width,
            };
        }
    }

    /// Returns the top of a group's heading in pixels, if any part of the heading is in the span `clip` of the line.
    pub fn heading(&self, group: usize, clip: (f64, f64)) -> Option<f32> {
        let is_in = |start: &f64| *start < clip.1 && start + self.row_width > clip.0;
        let start = self.headings.get(group).copied().filter(is_in)?;
        Some(((start / self.row_width).round() * self.rows.pitch) as f32)
    }

    /// Returns where the row of a part begins on the line.
    pub fn row_of(&self, part: Part) -> f64 {
        (f64::from(part.y.0) / self.rows.pitch).round() * self.row_width
    }

    /// Returns the x coordinate at which rows begin.
    pub fn left(&self) -> f64 {
        self.rows.left
    }

    /// Returns the pixels per byte, if all segments have the same scale.
    pub fn per_byte(&self) -> Option<f64> {
        self.per_byte
    }

    /// Returns the span of the line for the unmapped address space before segment `i`, if there is any.
    pub fn unmapped_before(&self, i: usize) -> Option<(f64, f64)> {
        let is_there = self.after_unmapped.get(i).copied().unwrap_or(false);
        is_there.then(|| (self.place(i).0 - SPACE - UNMAPPED, self.place(i).0 - SPACE))
    }

    /// Returns the height of the whole layout in pixels.
    pub fn height(&self) -> f64 {
        if self.places.is_empty() {
            return 0.0;
        }
        (self.end / self.row_width).ceil() * self.rows.pitch - (self.rows.pitch - self.rows.height)
    }

    /// Returns the start and end of segment `i` on the line.
    pub fn place(&self, i: usize) -> (f64, f64) {
        self.places.get(i).copied().unwrap_or_default()
    }

    /// Returns the span of the line whose rows are visible in a window of the layout's height.
    pub fn visible(&self, window: Window) -> (f64, f64) {
        // If an edge is not a number, `max` returns the top.
        let top = window.start.max(0.0).within(0.0, self.height());
        let bottom = window.end.max(top).within(top, top + MOST_PIXELS);
        let row = |y: f64| y / self.rows.pitch;
        (row(top).floor() * self.row_width, row(bottom).ceil() * self.row_width)
    }

    /// Returns the parts, row by row, of the span of the line from `start` to `end`. Every part has a width: what is
    /// left in a row can be too thin for the coordinates of a quad.
    pub fn parts(&self, start: f64, end: f64) -> impl Iterator<Item = Part> + '_ {
        let mut row = (start / self.row_width).floor();
        let mut at = start;
        let parts = std::iter::from_fn(move || {
            // A span that ends with its row has no part in the next one.
            (at < end).then(|| {
                let row_start = row * self.row_width;
                let to = end.min(row_start + self.row_width);
                let x = |t: f64| (self.rows.left + t - row_start) as f32;
                let top = row * self.rows.pitch;
                let part = Part { x: (x(at), x(to)), y: (top as f32, (top + self.rows.height) as f32) };
                row += 1.0;
                at = to.max(row * self.row_width);
                part
            })
        });
        parts.filter(|part| part.x.0 < part.x.1)
    }
}

/// Returns whether two ranges may be parts of one expandable segment, with nothing mapped between them.
fn is_apart(range: &ReservedRange, next: &ReservedRange) -> bool {
    let kind = |r: &ReservedRange| (r.stream, r.pool, r.is_small);
    range.is_expandable && next.is_expandable && kind(range) == kind(next) && range.end() < next.address.0
}

/// The scale at which all segments fit the view, or nearly: when there are so many that even their least widths don't
/// fit, half of the view is left to be true to scale.
fn pixels_per_byte(sizes: &[u64], row_width: f64, height: f64, rows: Rows, between: f64) -> f64 {
    let reserved: f64 = sizes.iter().map(|&size| size as f64).sum();
    let rows_in_view = ((height + rows.pitch - rows.height) / rows.pitch).floor().max(1.0);
    let room = rows_in_view * row_width;
    let for_bytes = (room - between - sizes.len() as f64 * (SPACE + LEAST)).max(room / 2.0);
    if reserved > 0.0 { for_bytes / reserved } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use query::{SegmentGroup, SegmentOrder};

    fn range(address: u64, size: u64, is_expandable: bool) -> ReservedRange {
        ReservedRange {
            address: trace::units::Address(address),
            size,
            stream: trace::units::Stream(0),
            pool: trace::units::PoolId::default(),
            is_small: false,
            is_expandable,
            since: 0,
            stack: trace::frames::StackId(0),
        }
    }

    fn laid_out(layout: SegmentLayout, sizes: &[u64], size: (f32, f64), zoom: f32) -> SegmentMap {
        let ranges: Vec<ReservedRange> = (0..).zip(sizes).map(|(i, size)| range(i << 40, *size, false)).collect();
        let placed = Placed::new(&ranges, &[], SegmentOrder::Address, SegmentGroup::None);
        SegmentMap::of(layout, &ranges, &placed, size, zoom)
    }

    #[test]
    fn to_scale_all_segments_share_a_scale_and_fit_the_view() {
        let sizes = [20 << 20, 2 << 20, 200 << 20, 2 << 20];
        let map = laid_out(SegmentLayout::ToScale, &sizes, (500.0, 100.0), 1.0);
        let width = |i| map.place(i).1 - map.place(i).0;
        assert!((width(0) / width(1) - 10.0).abs() < 1e-9);
        assert!((width(2) / width(0) - 10.0).abs() < 1e-9);
        assert!(map.height() <= 100.0, "{}", map.height());
        let zoomed = laid_out(SegmentLayout::ToScale, &sizes, (500.0, 100.0), 3.0);
        assert!((zoomed.place(2).1 - zoomed.place(2).0 - 3.0 * width(2)).abs() < 1e-6);
    }

    #[test]
    fn a_long_segment_continues_in_the_next_row() {
        let map = laid_out(SegmentLayout::ToScale, &[1 << 30], (100.0, 78.0), 1.0);
        let (start, end) = map.place(0);
        let parts: Vec<Part> = map.parts(start, end).collect();
        assert_eq!(parts.len(), 3, "three rows of 28 px fit into 78 px");
        let drawn: f32 = parts.iter().map(|p| p.x.1 - p.x.0).sum();
        assert!((f64::from(drawn) - (end - start)).abs() < 1e-3);
        assert_eq!(parts.iter().map(|p| p.y.0).collect::<Vec<_>>(), [0.0, 28.0, 56.0]);
    }

    #[test]
    fn packed_each_segment_has_its_own_rows() {
        let map = laid_out(SegmentLayout::Packed, &[5, 1000], (648.0, 100.0), 1.0);
        let rows: Vec<Vec<Part>> = (0..2).map(|i| map.parts(map.place(i).0, map.place(i).1).collect()).collect();
        assert_eq!(rows[0], [Part { x: (148.0, 648.0), y: (0.0, 20.0) }]);
        assert_eq!(rows[1], [Part { x: (148.0, 648.0), y: (24.0, 44.0) }]);
        assert_eq!(map.height(), 44.0);
        let twice = laid_out(SegmentLayout::Packed, &[5, 1000], (648.0, 100.0), 2.0);
        assert_eq!(twice.height(), 92.0);
    }

    #[test]
    fn unmapped_address_space_is_shown() {
        let range = |address: u64, is_expandable| range(address << 20, 20 << 20, is_expandable);
        let ranges = [range(0, true), range(60, true), range(80, false), range(200, false)];
        let placed = Placed::new(&ranges, &[], SegmentOrder::Address, SegmentGroup::None);
        let of = |layout| SegmentMap::of(layout, &ranges, &placed, (500.0, 100.0), 1.0);
        let map = of(SegmentLayout::ToScale);
        let unmapped: Vec<bool> = (0..4).map(|i| map.unmapped_before(i).is_some()).collect();
        assert_eq!(unmapped, [false, true, false, false]);
        let (start, end) = map.unmapped_before(1).unwrap();
        assert!(map.place(0).1 < start && end < map.place(1).0 && end - start == UNMAPPED);
        assert_eq!(map.place(2).0 - map.place(1).1, SPACE);
        let packed = of(SegmentLayout::Packed);
        assert!((0..4).all(|i| packed.unmapped_before(i).is_none()));
    }

    #[test]
    fn each_group_has_a_heading_and_begins_a_row() {
        let mut ranges = [range(0, 40 << 20, false), range(1 << 40, 2 << 20, false), range(2 << 40, 90 << 20, false)];
        ranges[1].is_small = true;
        let placed = Placed::new(&ranges, &[], SegmentOrder::Size, SegmentGroup::Pool);
        for layout in [SegmentLayout::ToScale, SegmentLayout::Packed] {
            let map = SegmentMap::of(layout, &ranges, &placed, (648.0, 300.0), 1.0);
            let first_part = |i: &usize| map.parts(map.place(*i).0, map.place(*i).1).next().unwrap();
            let tops = [2, 0, 1].map(|i| first_part(&i).y.0);
            let whole = (0.0, f64::INFINITY);
            let (first, second) = (map.heading(0, whole).unwrap(), map.heading(1, whole).unwrap());
            assert!(first < tops[0] && tops[0] <= tops[1] && tops[1] < second && second < tops[2], "{tops:?}");
            assert_eq!(first_part(&1).x.0, map.left() as f32);
            assert_eq!(map.heading(1, (0.0, 1.0)), None);
            assert_eq!(map.heading(2, whole), None);
            assert!(map.height() <= 300.0);
        }
    }

    #[test]
    fn invalid_views_are_laid_out() {
        for (width, height, zoom) in [(0.0, 0.0, 0.0), (f32::NAN, f64::NAN, f32::NAN), (-5.0, -5.0, -5.0)] {
            for layout in [SegmentLayout::ToScale, SegmentLayout::Packed] {
                let map = laid_out(layout, &[0, u64::MAX], (width, height), zoom);
                assert!(map.height().is_finite() && map.height() > 0.0);
            }
        }
        assert_eq!(laid_out(SegmentLayout::ToScale, &[], (100.0, 100.0), 1.0).height(), 0.0);
    }

    #[test]
    fn no_layout_is_magnified_more_than_a_view_can_be() {
        for layout in [SegmentLayout::ToScale, SegmentLayout::Packed] {
            let height = |zoom| laid_out(layout, &[1 << 20, 1 << 30], (500.0, 100.0), zoom).height();
            let most = SegmentsQuery::MOST_ZOOM;
            assert!(height(most) > height(most / 2.0));
            assert_eq!(height(most * 2.0), height(most));
        }
    }
}
