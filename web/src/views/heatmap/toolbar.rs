//! The toolbar of the heatmap: what the rows are, the part of the memory, the x axis, and the legend.

use query::heatmap::address;
use query::{Axis, Heatmap, HeatmapNeed, HeatmapPart, HeatmapRows, Paint, Window, pool_name, stream_name};
use trace::units::Bytes;
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use super::colors;
use super::pointer::zoom_rows;
use crate::hooks::{ModelHandle, use_model_of};
use crate::model::{Action, Parts, Selection, Setting};
use crate::render::palette::Palette;
use crate::views::controls::{choice, sends};
use crate::widgets::chips::paint_chip;
use crate::widgets::toolbar;

/// Properties of [`Toolbar`].
#[derive(PartialEq, Properties)]
pub struct ToolbarProps {
    /// A short description of what is drawn.
    pub note: String,
    /// The legend.
    pub legend: Html,
}

/// The toolbar of the heatmap.
#[component]
pub fn Toolbar(props: &ToolbarProps) -> Html {
    let model = use_model_of(Parts::VIEW);
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
            <span class="state-key" data-testid="heatmap-key">{ props.legend.clone() }</span>
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

/// Renders the legend of what is drawn. `near` are the moments around the failure that says which gaps are too small.
pub fn key(map: &Heatmap, near: Option<Window>, has_failure: bool, palette: &Palette) -> Html {
    html! {
        <>
            { if map.query.rows == HeatmapRows::Sizes { key_of_sizes(palette) } else { key_of_addresses(map, near) } }
            if has_failure {
                <span class="state-key-item"><span class="state-swatch failed" aria-hidden="true" />{ "failed request" }</span>
            }
        </>
    }
}

/// Renders what addresses in the picture are used for. What does not fit in the toolbar is behind a button: what most
/// pictures are about is first.
pub fn key_of_addresses(map: &Heatmap, near: Option<Window>) -> Html {
    let uses = colors::uses(map);
    let has = |place: u16| uses >> place & address::WHOLE != 0;
    let Window { start, end } = map.window;
    let (is_near, is_far) =
        near.map_or((false, true), |near| (near.start < end && start < near.end, start < near.start || near.end < end));
    let small = match map.query.needed {
        Some(HeatmapNeed { size, .. }) => format!("too small for {}", Bytes(size)),
        None => "too small for most requests of its pool".to_owned(),
    };
    let far = if is_near { "the same, away from the failure".to_owned() } else { small.clone() };
    let items = [
        ("unusable", small, is_near && has(address::UNUSABLE)),
        ("too-small", far, is_far && has(address::UNUSABLE)),
        ("allocated", "allocated".to_owned(), has(address::ALLOCATED)),
        ("usable", "cached".to_owned(), has(address::USABLE)),
        ("waiting", "waiting".to_owned(), has(address::WAITING)),
        ("unmapped", "unmapped".to_owned(), true),
    ];
    html! {
        { for items.into_iter().filter(|item| item.2).map(|(class, name, _)| html! {
            <span class="state-key-item"><span class={classes!("state-swatch", class)} aria-hidden="true" />{ name }</span>
        }) }
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
