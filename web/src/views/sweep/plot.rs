//! Peak memory against the values of the parameter.

use query::sweep::{Row, SweepPicture};
use trace::decimal::Decimal;
use yew::prelude::*;

use super::Touch;
use super::layout::{Layout, stretches};
use crate::browser::{Size, use_size};
use crate::model::Shared;

/// Half the size of a mark.
const MARK: f64 = 4.0;
/// Half the size of a cross: it is seen behind the mark of the run beside it, which may be a pixel away.
const CROSS: f64 = 6.0;

/// Reserved, allocated and out of memory differ in shape, and not only in colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Reserved,
    Allocated,
    Failed,
}

/// Properties of [`Plot`].
#[derive(PartialEq, Properties)]
pub(super) struct PlotProps {
    pub(super) sweep: Shared<SweepPicture>,
    /// The run whose line is shown, and the one that the pointer is at.
    pub(super) marked: (usize, Option<usize>),
    pub(super) on_touch: Callback<Touch>,
}

/// The plot with its key.
#[component]
pub(super) fn Plot(props: &PlotProps) -> Html {
    let node = use_node_ref();
    let Size { width, height, .. } = use_size(&node);
    let mut parts = Vec::new();
    if width > 0.0 {
        let layout = Layout::new(&props.sweep, (width, height));
        axes(&mut parts, &props.sweep, &layout);
        runs(&mut parts, props, &layout);
    }
    let keys =
        [(Mark::Reserved, "peak reserved"), (Mark::Allocated, "peak allocated"), (Mark::Failed, "out of memory")];
    html! {
        <figure class="sweep-plot">
            <div ref={node} class="sweep-canvas">
                <svg role="img" aria-label="Peak memory by value; the table has the numbers" data-testid="sweep-plot">{ parts }</svg>
            </div>
            <figcaption>
                { for keys.into_iter().map(|(kind, name)| html! { <span><svg class="sweep-key" aria-hidden="true">{ mark(kind, (7.0, 7.0)) }</svg>{ name }</span> }) }
            </figcaption>
        </figure>
    }
}

/// Adds the axes, the memory of the device, and the end of what fits.
fn axes(parts: &mut Vec<Html>, sweep: &SweepPicture, layout: &Layout) {
    let plot = layout.plot;
    let across = |y: f64| format!("M{} {}H{}", number(plot.x), number(y), number(plot.right()));
    let down = |x: f64, y: f64| format!("M{} {}V{}", number(x), number(y), number(plot.bottom()));
    let level = |bytes: f64| layout.y.pixel(bytes).round() + 0.5;
    for tick in layout.ticks() {
        let y = level(tick.at);
        parts.push(path("sweep-grid", across(y)));
        parts.push(label("is-end", (plot.x - 8.0, y), tick.label));
    }
    let end = sweep.proof.as_ref().map(|(index, proof)| (*index as usize, proof));
    for index in layout.labelled(&sweep.rows, end.map(|end| end.0)) {
        if let (Some(x), Some(row)) = (layout.xs.get(index), sweep.rows.get(index)) {
            let class = if end.is_some_and(|end| end.0 == index) { "is-strong" } else { "" };
            parts.push(label(class, (*x, plot.bottom() + 14.0), row.value.clone()));
        }
    }
    parts.push(label("", (plot.x + plot.width / 2.0, plot.bottom() + 34.0), sweep.param.clone()));
    let y = level(sweep.capacity_bytes as f64);
    parts.push(path("sweep-capacity", across(y)));
    parts.push(label("is-start", (plot.x + 4.0, y - 8.0), sweep.capacity.clone()));
    if let Some((index, proof)) = end
        && let Some(x) = layout.xs.get(index).copied()
    {
        parts.push(path("sweep-largest", down(x, 2.0)));
        // On the side where there is more room.
        let is_right = x > plot.x + plot.width / 2.0;
        let (class, x) = if is_right { ("is-strong is-end", x - 6.0) } else { ("is-strong is-start", x + 6.0) };
        parts.push(label(class, (x, 8.0), proof.clone()));
    }
}

/// Adds the lines and the marks of the runs, and what answers to the pointer.
fn runs(parts: &mut Vec<Html>, props: &PlotProps, layout: &Layout) {
    let (rows, plot) = (&props.sweep.rows, layout.plot);
    let at =
        |index: usize, bytes: u64| (layout.xs.get(index).copied().unwrap_or_default(), layout.y.pixel(bytes as f64));
    let box_of = |x: f64, width: f64| {
        let (x, y, width, height) = (number(x), number(plot.y), number(width), number(plot.height));
        format!("M{x} {y}h{width}v{height}h-{width}z")
    };
    for index in [Some(props.marked.0), props.marked.1].into_iter().flatten() {
        let (x, bottom) = at(index, 0);
        parts.push(path("sweep-chosen", format!("M{} {}V{}", number(x), number(plot.y), number(bottom))));
    }
    if props.sweep.is_numeric {
        for stretch in stretches(rows) {
            for (class, peak) in PEAKS {
                let point = |index: &usize| rows.get(*index).map(|row| at(*index, peak(row)));
                let points = stretch.iter().filter_map(point).map(|(x, y)| format!("{} {}", number(x), number(y)));
                parts.push(path(class, ["M", &points.collect::<Vec<_>>().join("L")].concat()));
            }
        }
    }
    // The marks of runs that fit are on top.
    for fits in [false, true] {
        for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.fits == fits) {
            parts.push(mark(Mark::Allocated, at(index, row.peak_allocated)));
            let kind = if fits { Mark::Reserved } else { Mark::Failed };
            parts.push(mark(kind, at(index, row.peak_reserved)));
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let (x, width) = layout.column(index);
        let touch = |touch: Touch| props.on_touch.reform(move |_: PointerEvent| touch);
        let choose = props.on_touch.reform(move |_: MouseEvent| Touch::Choose(index));
        parts.push(html! {
            <path class="sweep-column" d={box_of(x, width)} onpointerenter={touch(Touch::At(index))} onpointerleave={touch(Touch::Left)} onclick={choose} data-testid="sweep-column">
                <title>{ row.title.clone() }</title>
            </path>
        });
    }
}

/// A peak of a run, in bytes.
type Peak = fn(&Row) -> u64;

/// The lines.
const PEAKS: [(&str, Peak); 2] =
    [("sweep-line is-reserved", |row| row.peak_reserved), ("sweep-line is-allocated", |row| row.peak_allocated)];

/// Renders the mark of a run.
fn mark(kind: Mark, (x, y): (f64, f64)) -> Html {
    let half = if kind == Mark::Failed { CROSS } else { MARK };
    let (left, top, middle) = (number(x - half), number(y - half), number(y));
    let (r, d) = (number(half), number(2.0 * half));
    let (class, shape) = match kind {
        Mark::Reserved => ("sweep-mark is-reserved", format!("M{left} {top}h{d}v{d}h-{d}z")),
        Mark::Allocated => {
            ("sweep-mark is-allocated", format!("M{left} {middle}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0"))
        }
        Mark::Failed => ("sweep-mark is-failed", format!("M{left} {top}l{d} {d}m0 -{d}l-{d} {d}")),
    };
    path(class, shape)
}

fn path(class: &'static str, d: String) -> Html {
    html! { <path {class} {d} /> }
}

fn label(class: &'static str, (x, y): (f64, f64), text: String) -> Html {
    html! { <text class={classes!("sweep-label", class)} x={number(x)} y={number(y)}>{ text }</text> }
}

/// Returns a coordinate as text.
fn number(value: f64) -> String {
    Decimal::of(value, 1).to_string()
}
