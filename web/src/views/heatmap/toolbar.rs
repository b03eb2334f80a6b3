//! The toolbar of the heatmap: what the rows are, the part of the memory, the x axis, and the legend.

use query::{Axis, Heatmap, HeatmapNeed, HeatmapPart, HeatmapRows, Paint, Window, pool_name, stream_name};
use trace::units::Bytes;
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use super::pointer::zoom_rows;
use crate::hooks::{ModelHandle, use_model, use_palette};
use crate::model::{Action, Selection, Setting};
use crate::render::palette::Palette;
use crate::views::controls::{choice, sends};
use crate::widgets::chips::paint_chip;
use crate::widgets::toolbar;

/// Properties of [`Toolbar`].
#[derive(PartialEq, Properties)]
pub struct ToolbarProps {
    /// A short description of what is drawn.
    pub note: String,
    /// Whether a failed request is drawn.
    pub has_failure: bool,
}

/// The toolbar of the heatmap.
#[component]
pub fn Toolbar(props: &ToolbarProps) -> Html {
    let model = use_model();
    let palette = use_palette();
    let select = use_node_ref();
    let view = &model.view;
    let (axis, has_times, by_size) =
        (view.axis, model.device().is_some_and(|device| device.has_times), view.settings.heatmap_sizes);
    let parts = parts(&model);
    let onchange = {
        let (model, select, parts) = (model.clone(), select.clone(), parts.clone());
        Callback::from(move |_: Event| {
            let chosen = select.cast::<HtmlSelectElement>().map(|select| select.selected_index());
            let part = chosen.and_then(|i| usize::try_from(i).ok()).and_then(|i| parts.get(i));
            if let Some((part, _)) = part {
                model.dispatch(Action::SetHeatmapPart(*part));
            }
        })
    };
    let is_whole = view.window == model.extent() && view.zooms.heatmap_offsets.is_none();
    html! {
        <toolbar::Toolbar label="Heatmap">
            <div class="choices" role="group" aria-label="Rows">
                { choice("heatmap-addresses", "Addresses", "One row for each stretch of addresses", !by_size, sends(&model, Action::Set(Setting::HeatmapSizes(false)))) }
                { choice("heatmap-sizes", "Request sizes", "One row for each size of request: the free memory that could serve it", by_size, sends(&model, Action::Set(Setting::HeatmapSizes(true)))) }
            </div>
            if parts.len() > 1 {
                <select ref={select} class="toolbar-select" aria-label="Part of the memory" title="The part of the memory that is shown" data-testid="heatmap-part" {onchange}>
                    { for parts.iter().map(|(part, name)| html! { <option selected={view.zooms.heatmap_part == *part}>{ name.clone() }</option> }) }
                </select>
            }
            if has_times {
                <div class="choices" role="group" aria-label="X axis">
                    { choice("heatmap-time", "Time", "Show time on the x axis", axis == Axis::Time, sends(&model, Action::SetAxis(Axis::Time))) }
                    { choice("heatmap-event", "Events", "Show event numbers on the x axis", axis == Axis::Event, sends(&model, Action::SetAxis(Axis::Event))) }
                </div>
            }
            <span class="state-key" data-testid="heatmap-key">
                { if by_size { key_of_sizes(&palette) } else { key_of_addresses(model.heatmap_need()) } }
                if props.has_failure {
                    <span class="state-key-item"><span class="state-swatch failed" aria-hidden="true" />{ "failed request" }</span>
                }
            </span>
            if !by_size {
                <div class="choices" role="group" aria-label="Zoom into addresses">
                    <button type="button" class="choice" disabled={view.zooms.heatmap_offsets.is_none()} title="Zoom out on addresses (−, Alt+wheel)" aria-label="Zoom out on addresses" onclick={zooms(&model, 2.0)} data-testid="heatmap-zoom-out">{ "−" }</button>
                    <button type="button" class="choice" title="Zoom in on addresses (+, Alt+wheel)" aria-label="Zoom in on addresses" onclick={zooms(&model, 0.5)} data-testid="heatmap-zoom-in">{ "+" }</button>
                </div>
            }
            <button type="button" class="toolbar-button" disabled={is_whole} title="Show the whole trace"
                onclick={sends(&model, Action::FitAll)} data-testid="heatmap-fit">
                { "Whole trace" }
            </button>
            <span class="toolbar-note" data-testid="heatmap-note">{ &props.note }</span>
        </toolbar::Toolbar>
    }
}

/// Returns the parts of the memory that can be chosen, with their names.
fn parts(model: &ModelHandle) -> Vec<(HeatmapPart, String)> {
    let mut parts = vec![(HeatmapPart::All, "all memory".to_owned())];
    let device = model.device();
    let pools = device.map_or(&[][..], |device| &device.pools);
    parts.extend(pools.iter().map(|&pool| (HeatmapPart::Pool(pool), pool_name(pool))));
    if let Some(streams) = device.map(|device| &device.streams).filter(|streams| streams.len() > 1) {
        parts.extend(streams.iter().map(|stream| (HeatmapPart::Stream(*stream), stream_name(*stream, streams))));
    }
    let selected = match model.view.selection {
        Selection::Segment(address) => Some(HeatmapPart::Segment(address)),
        _ => None,
    };
    for part in [Some(model.view.zooms.heatmap_part), selected].into_iter().flatten() {
        if let (HeatmapPart::Segment(address), false) = (part, parts.iter().any(|(known, _)| *known == part)) {
            parts.push((part, format!("segment {address}")));
        }
    }
    parts
}

fn key_of_addresses(needed: Option<HeatmapNeed>) -> Html {
    let (unusable, too_small) = match needed {
        Some(HeatmapNeed { size, .. }) => {
            (format!("too small for the failed {}", Bytes(size)), "the same, away from the failure")
        }
        None => (String::new(), "cached, too small for most requests of its pool"),
    };
    let uses = [
        // What does not fit in the toolbar is behind a button: what most pictures show is first.
        ("allocated", "allocated"),
        ("usable", "cached"),
        ("unusable", unusable.as_str()),
        ("too-small", too_small),
        ("waiting", "waiting"),
        ("unmapped", "unmapped"),
    ];
    let uses = uses.into_iter().filter(|(_, name)| !name.is_empty());
    html! {
        <>
            { for uses.map(|(class, name)| html! {
                <span class="state-key-item"><span class={classes!("state-swatch", class)} aria-hidden="true" />{ name.to_owned() }</span>
            }) }
        </>
    }
}

fn key_of_sizes(palette: &Palette) -> Html {
    html! {
        <>
            <span class="state-key-item">
                { "less" }
                { for [2, 5, 8, 11, 14].map(|step| paint_chip(palette, Paint::ramp(step))) }
                { "more that could serve the size" }
            </span>
            <span class="state-key-item">
                <span class="state-swatch unusable" aria-hidden="true" />{ "nothing at some moment" }
            </span>
        </>
    }
}

fn zooms(model: &ModelHandle, factor: f64) -> Callback<MouseEvent> {
    let model = model.clone();
    Callback::from(move |_| zoom_rows(&model, factor))
}

/// Describes what an answer draws, and how much of it is visible.
pub fn note(map: &Heatmap, shown: Option<Window>) -> String {
    let row = Bytes(map.row_bytes);
    match (map.query.rows, shown) {
        (HeatmapRows::Sizes, _) => String::new(),
        (HeatmapRows::Addresses { .. }, None) => format!("{row} a row"),
        (HeatmapRows::Addresses { .. }, Some(shown)) => {
            format!("{} of {} · {row} a row", Bytes(shown.length() as u64), Bytes(map.total))
        }
    }
}
