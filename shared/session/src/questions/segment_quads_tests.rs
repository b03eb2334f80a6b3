//! The blocks of a segment map as rectangles, for traces that are written as text.

use analysis::segment_map::SegmentMap;
use query::{Answer, ColorBy, Paint, Quads, Query, SegmentLayout, SegmentsQuery, Window};

use crate::Session;

/// Returns the blocks at a trace's end in rows of `width` pixels: colour, number of allocation, and pixels from and
/// to.
fn check(lines: &str, width: f32, want: &[(Paint, u32, f32, f32)]) {
    let snapshot = trace::testing::snapshot(lines);
    let mut session = Session::new(snapshot, "pickle".to_owned(), Vec::new(), &mut |_| {});
    let query = SegmentsQuery {
        position: u32::MAX,
        layout: SegmentLayout::Packed,
        width: SegmentMap::LABEL_WIDTH as f32 + width,
        height: 500.0,
        visible: Window { start: 0.0, end: 500.0 },
        zoom: 1.0,
        color_by: ColorBy::Size,
        filter: Vec::new(),
        highlight: None,
        line: None,
        ..SegmentsQuery::default()
    };
    let Answer::Segments(map) = session.answer(0, &Query::Segments(query)) else { panic!("a segment map") };
    let blocks = &map.blocks;
    let left = SegmentMap::LABEL_WIDTH as f32;
    let got: Vec<_> = (0..blocks.len())
        .map(|i| (Paint(blocks.paint[i]), blocks.id[i], blocks.x0[i] - left, blocks.x1[i] - left))
        .collect();
    assert_eq!(got, want);
}

const SMALL: Paint = Paint::ramp(0);

#[test]
fn each_kind_of_memory_has_its_own_color() {
    let lines = "segment_alloc 0x1000000 2097152
                 alloc 0x1000000 524288 a@m.py:1
                 alloc 0x1080000 524000 a@m.py:1
                 free_requested 0x1080000";
    let large = Paint::ramp(5);
    // 2,048 bytes a pixel: rounding is too thin to be visible.
    let want =
        [(large, 0, 0.0, 256.0), (Paint::PENDING, 1, 256.0, 512.0), (Paint::CACHED, Quads::NONE, 512.0, 1_024.0)];
    check(lines, 1_024.0, &want);
}

#[test]
fn rounding_is_drawn_where_it_is_visible() {
    let lines = "segment_alloc 0x1000000 2097152 pool=1
                 alloc 0x1000000 512 pool=1
                 alloc 0x1000200 768 pool=1";
    let private = |paint: Paint| paint.with(Paint::PRIVATE);
    // 256 bytes a pixel.
    let want = [
        (private(SMALL), 0, 0.0, 2.0),
        (private(SMALL), 1, 2.0, 5.0),
        (private(Paint::ROUNDING), 1, 5.0, 6.0),
        (private(Paint::CACHED), Quads::NONE, 6.0, 8_192.0),
    ];
    check(lines, 8_192.0, &want);
}

#[test]
fn blocks_narrower_than_a_pixel_are_summed_by_kind() {
    // 2,048 bytes a pixel, and every other 512 of the first two pixels are in use.
    let blocks = (0..4).map(|i| format!("alloc {} 512", 0x100_0000 + 1_024 * i));
    let lines: Vec<String> = std::iter::once("segment_alloc 0x1000000 2097152".to_owned()).chain(blocks).collect();
    let want = [
        (Paint::OTHER, Quads::NONE, 0.0, 0.5),
        (Paint::CACHED, Quads::NONE, 0.5, 1.0),
        (Paint::OTHER, Quads::NONE, 1.0, 1.5),
        // The gap after the last block is a piece of its own.
        (Paint::CACHED, Quads::NONE, 1.5, 1.75),
        (Paint::CACHED, Quads::NONE, 1.75, 1_024.0),
    ];
    check(&lines.join("\n"), 1_024.0, &want);
}
