//! Peak memory against the values of the parameter.

use shared::decimal::Decimal;
use shared::sweep::{Run, Sweep};
use shared::units::Bytes;
use yew::prelude::*;

use super::layout::{Layout, stretches};
use crate::browser::use_size;
use crate::model::Shared;

/// Half the size of a mark.
const MARK: f64 = 4.0;

/// Properties of [`Plot`].
#[derive(PartialEq, Properties)]
pub(super) struct PlotProps {
    pub(super) sweep: Shared<Sweep>,
    /// The run whose line is shown.
    pub(super) chosen: usize,
    /// The run that the pointer is at, here or in the table.
    pub(super) pointed: Option<usize>,
    pub(super) on_point: Callback<Option<usize>>,
    pub(super) on_choose: Callback<usize>,
}

/// The plot with its key.
#[component]
pub(super) fn Plot(props: &PlotProps) -> Html {
    let node = use_node_ref();
    let size = use_size(&node);
    let sweep = &*props.sweep;
    let runs = sweep.all_runs();
    let label = format!("Peak memory of {} by {}; the table has the numbers", sweep.story, sweep.param);
    html! {
        <figure class="sweep-plot">
            <div ref={node} class="sweep-canvas">
                if size.0 > 0.0 {
                    <svg width={number(size.0)} height={number(size.1)} role="img" aria-label={label} data-testid="sweep-plot">
                        { picture(props, sweep, &runs, size) }
                    </svg>
                }
            </div>
            <figcaption>
                <span>{ key(square) }{ "peak reserved" }</span>
                <span>{ key(circle) }{ "peak allocated" }</span>
                if runs.iter().any(|run| !run.fits) {
                    <span>{ key(cross) }{ "out of memory: the peak up to there" }</span>
                }
            </figcaption>
        </figure>
    }
}

/// Renders all that is inside the picture, from the back to the front.
fn picture(props: &PlotProps, sweep: &Sweep, runs: &[&Run], size: (f64, f64)) -> Html {
    let layout = Layout::new(sweep, runs, size);
    let plot = layout.plot;
    let fits = sweep.largest.as_ref().and_then(|largest| largest.fits().or(largest.fails()));
    let important = fits.and_then(|fits| runs.iter().position(|run| run.value == fits.value));
    let middle = plot.x + plot.width / 2.0;
    html! {
        <>
            { for layout.ticks().into_iter().map(|tick| {
                let y = number(layout.y.pixel(tick.at).round() + 0.5);
                html! {
                    <>
                        <path class="sweep-grid" d={format!("M{} {y}H{}", number(plot.x), number(plot.right()))} />
                        <text class="sweep-label is-end" x={number(plot.x - 8.0)} y={y}>{ tick.label }</text>
                    </>
                }
            }) }
            { for layout.labelled(runs, important).into_iter().filter_map(|index| {
                let (x, run) = (*layout.xs.get(index)?, runs.get(index)?);
                let is_strong = (important == Some(index)).then_some("is-strong");
                Some(html! {
                    <text class={classes!("sweep-label", is_strong)} x={number(x)} y={number(plot.bottom() + 14.0)}>{ run.value.clone() }</text>
                })
            }) }
            <text class="sweep-label" x={number(middle)} y={number(plot.bottom() + 34.0)}>{ sweep.param.clone() }</text>
            { capacity(sweep, &layout) }
            { proof(sweep, &layout, important) }
            { [props.pointed, Some(props.chosen)].into_iter().flatten().filter_map(|index| {
                let x = number(*layout.xs.get(index)?);
                Some(html! { <path class="sweep-chosen" d={format!("M{x} {}V{}", number(plot.y), number(plot.bottom()))} /> })
            }).collect::<Html>() }
            if sweep.is_numeric() {
                { lines(&layout, runs, "is-reserved", |run| run.peak_reserved) }
                { lines(&layout, runs, "is-allocated", |run| run.peak_allocated) }
            }
            { for runs.iter().enumerate().map(|(index, run)| marks(&layout, index, run)) }
            { for runs.iter().enumerate().map(|(index, run)| column(props, sweep, &layout, index, run)) }
        </>
    }
}

/// Renders the memory of the device.
fn capacity(sweep: &Sweep, layout: &Layout) -> Html {
    let (plot, y) = (layout.plot, layout.y.pixel(sweep.capacity_bytes as f64).round() + 0.5);
    let name = sweep.card.as_ref().map_or_else(|| "capacity".to_owned(), |card| format!("capacity of {card}"));
    html! {
        <>
            <path class="sweep-capacity" d={format!("M{} {}H{}", number(plot.x), number(y), number(plot.right()))} data-testid="sweep-capacity" data-bytes={sweep.capacity_bytes.to_string()} />
            <text class="sweep-label is-start" x={number(plot.x + 4.0)} y={number(y - 8.0)}>{ format!("{name}: {}", Bytes(sweep.capacity_bytes)) }</text>
        </>
    }
}

/// Renders the end of what fits, above the plot.
fn proof(sweep: &Sweep, layout: &Layout, important: Option<usize>) -> Html {
    let plot = layout.plot;
    let Some((x, largest)) = important.and_then(|index| layout.xs.get(index)).zip(sweep.largest.as_ref()) else {
        return Html::default();
    };
    // On the side where there is more room.
    let (side, at) = if *x > plot.x + plot.width / 2.0 { ("is-end", x - 6.0) } else { ("is-start", x + 6.0) };
    html! {
        <>
            <path class="sweep-largest" d={format!("M{} {}V{}", number(*x), number(2.0), number(plot.bottom()))} />
            <text class={classes!("sweep-label", "is-strong", side)} x={number(at)} y={number(8.0)} data-testid="sweep-proof">{ largest.proof() }</text>
        </>
    }
}

fn lines(layout: &Layout, runs: &[&Run], class: &'static str, peak: fn(&Run) -> u64) -> Html {
    let point = |index: usize| {
        let (x, run) = (layout.xs.get(index)?, runs.get(index)?);
        Some(format!("{},{}", number(*x), number(layout.y.pixel(peak(run) as f64))))
    };
    let line = |stretch: Vec<usize>| stretch.into_iter().filter_map(point).collect::<Vec<_>>().join(" ");
    html! { { for stretches(runs).into_iter().map(|stretch| html! { <polyline class={classes!("sweep-line", class)} points={line(stretch)} /> }) } }
}

/// Renders the points of a run. Reserved, allocated and out of memory differ in shape, and not only in colour.
fn marks(layout: &Layout, index: usize, run: &Run) -> Html {
    let Some(x) = layout.xs.get(index).copied() else { return Html::default() };
    let at = |bytes: u64| (x, layout.y.pixel(bytes as f64));
    html! {
        <>
            { circle(at(run.peak_allocated)) }
            { if run.fits { square(at(run.peak_reserved)) } else { cross(at(run.peak_reserved)) } }
        </>
    }
}

/// Renders what answers to the pointer for a run.
fn column(props: &PlotProps, sweep: &Sweep, layout: &Layout, index: usize, run: &Run) -> Html {
    let (x, width) = layout.column(index);
    let (plot, on_point, on_choose) = (layout.plot, props.on_point.clone(), props.on_choose.clone());
    let leave = on_point.reform(|_: PointerEvent| None);
    let title = format!(
        "{}={}: {} reserved, {} allocated, out of memory: {}",
        sweep.param,
        run.value,
        Bytes(run.peak_reserved),
        Bytes(run.peak_allocated),
        run.failure()
    );
    html! {
        <rect class="sweep-column" x={number(x)} y={number(plot.y)} width={number(width)} height={number(plot.height)}
            onpointerenter={on_point.reform(move |_: PointerEvent| Some(index))} onpointerleave={leave}
            onclick={on_choose.reform(move |_: MouseEvent| index)} data-testid="sweep-column">
            <title>{ title }</title>
        </rect>
    }
}

fn square((x, y): (f64, f64)) -> Html {
    let (x, y, side) = (number(x - MARK), number(y - MARK), number(2.0 * MARK));
    html! { <rect class="sweep-mark is-reserved" {x} {y} width={side.clone()} height={side} /> }
}

fn circle((x, y): (f64, f64)) -> Html {
    html! { <circle class="sweep-mark is-allocated" cx={number(x)} cy={number(y)} r={number(MARK)} /> }
}

fn cross((x, y): (f64, f64)) -> Html {
    let (left, top, side) = (number(x - MARK), number(y - MARK), number(2.0 * MARK));
    html! { <path class="sweep-mark is-failed" d={format!("M{left} {top}l{side} {side}m0 -{side}l-{side} {side}")} /> }
}

/// Renders a mark for the key.
fn key(mark: fn((f64, f64)) -> Html) -> Html {
    html! { <svg class="sweep-key" width="12" height="12" aria-hidden="true">{ mark((6.0, 6.0)) }</svg> }
}

/// Returns a coordinate as text.
fn number(value: f64) -> String {
    Decimal::of(value, 1).to_string()
}
