//! Tests of the layout.

use super::*;
use crate::site::SiteInput;
use replay::index::Index;
use trace::testing::stack;

const WIDE: Shape<'_> = Shape {
    bottom_up: false,
    folds: false,
    transforms: &[],
    sandwich: None,
    hits: None,
    zoom: &[],
    width: 1_000.0,
    no_stack: "",
};

/// Lays out `(frames, bytes)`, and formats each box as a line: depth, name, bytes, from and to in pixels.
fn check(leaves: &[(&[&str], u64)], shape: Shape<'_>, want: &[&str]) {
    let mut symbols = Symbols::default();
    let leaves: Vec<Leaf> = leaves
        .iter()
        .map(|(frames, bytes)| Leaf {
            stack: stack(&mut symbols, frames),
            bytes: *bytes,
            count: 1,
            is_lit: true,
            ..Leaf::default()
        })
        .collect();
    let sites = Sites::build(SiteInput { symbols: &symbols, usages: &[] });
    let got: Vec<String> = picture(&symbols, &sites, &leaves, shape)
        .boxes
        .iter()
        .map(|b| {
            let pixel = |x: f32| (x * shape.width).round();
            format!("{} {} {} {}-{}", b.depth, b.name, b.bytes, pixel(b.x0), pixel(b.x1))
        })
        .collect();
    assert_eq!(got, want);
}

const TREE: [(&[&str], u64); 4] = [
    (&["relu@m.py:1", "forward@m.py:2", "main@t.py:1"], 300),
    (&["linear@m.py:5", "forward@m.py:2", "main@t.py:1"], 500),
    (&["step@o.py:1", "main@t.py:1"], 150),
    (&[], 50),
];

#[test]
fn top_down_begins_with_the_outermost_frame() {
    let want = [
        "0 all live memory 1000 0-1000",
        "1 main 950 0-950",
        "1 no stack recorded 50 950-1000",
        "2 forward 800 0-800",
        "2 step 150 800-950",
        "3 linear 500 0-500",
        "3 relu 300 500-800",
    ];
    check(&TREE, WIDE, &want);
}

#[test]
fn bottom_up_begins_with_the_innermost_frame() {
    let want = [
        "0 all live memory 1000 0-1000",
        "1 linear 500 0-500",
        "1 relu 300 500-800",
        "1 step 150 800-950",
        "1 no stack recorded 50 950-1000",
        "2 forward 500 0-500",
        "2 forward 300 500-800",
        "2 main 150 800-950",
        "3 main 500 0-500",
        "3 main 300 500-800",
    ];
    check(&TREE, Shape { bottom_up: true, ..WIDE }, &want);
}

#[test]
fn boxes_narrower_than_a_pixel_are_summed() {
    let want = [
        "0 all live memory 1000 0-4",
        "1 main 950 0-4",
        "1 1 smaller 50 4-4",
        "2 forward 800 0-3",
        "2 1 smaller 150 3-4",
        "3 linear 500 0-2",
        "3 relu 300 2-3",
    ];
    check(&TREE, Shape { width: 4.0, ..WIDE }, &want);
}

#[test]
fn a_zoomed_box_takes_the_whole_width() {
    // Frames are numbered in the order in which they are first seen: relu, forward, main, linear, step.
    let want = [
        "0 all live memory 1000 0-1000",
        "1 main 950 0-1000",
        "2 forward 800 0-1000",
        "3 linear 500 0-625",
        "3 relu 300 625-1000",
    ];
    check(&TREE, Shape { zoom: &[2, 1], ..WIDE }, &want);
    let gone = ["0 all live memory 1000 0-1000", "1 step 0 0-1000"];
    check(&TREE, Shape { zoom: &[4], ..WIDE }, &gone);
}

const FOLDED: Shape<'_> = Shape { folds: true, ..WIDE };
const LIBRARIES: [(&[&str], u64); 3] = [
    (
        &[
            "torch::unwind::unwind()@??",
            "relu@/x/site-packages/torch/nn/functional.py:9",
            "forward@m.py:1",
            "_call_impl@/x/site-packages/torch/nn/modules/module.py:1",
            "main@t.py:1",
            "_start@??",
        ],
        70,
    ),
    (
        &[
            "gelu@/x/site-packages/torch/nn/functional.py:7",
            "forward@m.py:1",
            "_call_impl@/x/site-packages/torch/nn/modules/module.py:1",
            "_wrapped_call_impl@/x/site-packages/torch/nn/modules/module.py:2",
            "main@t.py:1",
        ],
        20,
    ),
    (&["torch::unwind::unwind()@??", "torch::autograd::generated::AddBackward0::apply()@??", "_start@??"], 10),
];

#[test]
fn a_run_of_library_frames_is_one_box() {
    let want = [
        "0 all live memory 100 0-1000",
        "1 main 90 0-900",
        "1 torch::autograd::generated::AddBackward0::apply() 10 900-1000",
        "2 1 to 2 frames of torch 90 0-900",
        "2 1 frame of torch 10 900-1000",
        "3 forward 90 0-900",
        "4 1 to 2 frames of torch 90 0-900",
    ];
    check(&LIBRARIES, FOLDED, &want);
    // The call site comes first.
    let want = [
        "0 all live memory 100 0-1000",
        "1 forward 90 0-900",
        "1 torch::autograd::generated::AddBackward0::apply() 10 900-1000",
        "2 1 to 2 frames of torch 90 0-900",
        "3 main 90 0-900",
    ];
    check(&LIBRARIES, Shape { bottom_up: true, ..FOLDED }, &want);
}

#[test]
fn a_folded_run_opens_when_it_is_zoomed_into() {
    let mut symbols = Symbols::default();
    LIBRARIES.iter().for_each(|(frames, _)| {
        stack(&mut symbols, frames);
    });
    let sites = Sites::build(SiteInput { symbols: &symbols, usages: &[] });
    let frame = |index: usize| symbols.stack(StackId(1)).get(index).expect("a frame").0;
    let torch = FlameBox::FOLDED + sites.best_frames().library(FrameId(frame(3)));
    let (main, forward) = (frame(4), frame(2));
    let open = [
        "0 all live memory 100 0-1000",
        "1 main 90 0-1000",
        "2 1 to 2 frames of torch 90 0-1000",
        "3 _call_impl 70 0-778",
        "3 _wrapped_call_impl 20 778-1000",
        "4 forward 70 0-778",
        "4 _call_impl 20 778-1000",
        "5 2 frames of torch 70 0-778",
        "5 forward 20 778-1000",
        "6 1 frame of torch 20 778-1000",
    ];
    check(&LIBRARIES, Shape { zoom: &[main, torch], ..FOLDED }, &open);
    // The run stays folded if a box after it was zoomed into.
    let passed = [
        "0 all live memory 100 0-1000",
        "1 main 90 0-1000",
        "2 1 to 2 frames of torch 90 0-1000",
        "3 forward 90 0-1000",
        "4 1 to 2 frames of torch 90 0-1000",
    ];
    check(&LIBRARIES, Shape { zoom: &[main, torch, forward], ..FOLDED }, &passed);
}

#[test]
fn the_deepest_stack_and_the_emptiest_state_are_laid_out() {
    check(&[], WIDE, &["0 all live memory 0 0-1000"]);
    let mut symbols = Symbols::default();
    let names: Vec<String> = (0..65_536).map(|i| format!("f{i}@m.py:{i}")).collect();
    let frames: Vec<&str> = names.iter().map(String::as_str).collect();
    let leaf = Leaf { stack: stack(&mut symbols, &frames), bytes: 1, count: 1, is_lit: true, ..Leaf::default() };
    assert_eq!(picture(&symbols, &Sites::default(), &[leaf], WIDE).boxes.len(), 65_537);
}
