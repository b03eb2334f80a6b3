//! What leaves: what the trace says and what its copy says, and the boxes that decide about it.

use std::rc::Rc;

use query::redaction::Paths;
use trace::units::{Bytes, Count, Moment, counted};
use web_sys::{HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

use super::choices::{Choices, PATHS};
use super::entries::EntryRows;
use super::moved_view::lost;
use super::origin::Origin;
use super::use_copy::Copy;

/// Times before this one, in the year 2001, are not of a clock: microseconds since the epoch.
const FIRST_CLOCK_US: i64 = 1_000_000_000_000_000;

/// What [`leaving`] needs.
pub struct LeavingProps {
    /// The trace.
    pub origin: Rc<Origin>,
    /// The size of its file; 0 for a session.
    pub bytes: u64,
    /// Whether its job still runs.
    pub is_growing: bool,
    /// Its copy.
    pub copy: Copy,
    /// The choices.
    pub choices: Choices,
    /// Called with new choices.
    pub on_choices: Callback<Choices>,
}

/// A box that changes the choices: its id, whether it is set, and what it sets.
type Change = fn(&mut Choices, bool);

/// What leaves, with a box for each choice.
pub fn leaving(props: &LeavingProps) -> Html {
    let LeavingProps { origin, copy, choices, .. } = props;
    let Some(contents) = &copy.contents else {
        return html! { <p class="share-wait" role="status">{ "Checking what would be shared…" }</p> };
    };
    let ([was_events, is_events], [was_devices, is_devices]) = (contents.events, &contents.devices);
    let on_paths = {
        let (choices, on_choices) = (choices.clone(), props.on_choices.clone());
        Callback::from(move |event: Event| {
            let Some(select) = event.target_dyn_into::<HtmlSelectElement>() else { return };
            let chosen = usize::try_from(select.selected_index()).ok().and_then(|index| PATHS.get(index));
            let paths = chosen.map_or(Paths::default(), |(paths, _)| *paths);
            on_choices.emit(Choices { paths, ..choices.clone() });
        })
    };
    let paths = html! {
        <select class="toolbar-select" aria-label="Paths of source files" onchange={on_paths} data-testid="share-paths">
            { for PATHS.iter().map(|(paths, label)| html! { <option selected={*paths == choices.paths}>{ *label }</option> }) }
        </select>
    };
    let keep = |id, is_on, change: Change| check(props, id, "Keep".to_owned(), is_on, change);
    let controls = |name: &str, is_empty: bool| match name {
        // There is nothing to keep.
        _ if is_empty => Html::default(),
        "Folders" => paths.clone(),
        "Host and job" => keep("share-places", choices.has_places, |choices, is_on| choices.has_places = is_on),
        "Attached texts" => keep("share-metadata", choices.has_metadata, |choices, is_on| choices.has_metadata = is_on),
        "Annotations" => {
            keep("share-annotations", choices.has_annotations, |choices, is_on| choices.has_annotations = is_on)
        }
        _ => html! { <span class="share-follows">{ "Follows the choice for folders" }</span> },
    };
    let of_lists = contents.lists.iter().enumerate().map(|(index, list)| {
        let control = controls(&list.name, list.rows.is_empty());
        html! { <EntryRows contents={Rc::clone(contents)} {index} {control} /> }
    });
    let lost = origin
        .shown
        .as_ref()
        .filter(|_| choices.is_part)
        .map(|part| lost(&origin.view, origin.shown_device(), origin.start, copy.moved, part));
    let lost = lost.unwrap_or_default();
    html! {
        <>
            <p class="share-size" aria-live="polite" data-testid="share-size">
                <strong>{ size(copy, props.is_growing) }</strong>{ ": " }{ counted(is_events, "event") }{ " of " }
                { counted(is_devices.len() as u64, "device") }
                if props.bytes > 0 { <span class="quiet">{ format!(" (the file has {})", Bytes(props.bytes)) }</span> }
            </p>
            if !origin.damage.is_empty() {
                <p class="share-warning" role="note" data-testid="share-damage">
                    <b>{ "This trace is incomplete, and so is a copy of it. " }</b>{ origin.damage.join(" ") }
                </p>
            }
            // It is there before it says something, so that a screen reader reads it.
            <p class={if lost.is_empty() { "visually-hidden" } else { "share-warning" }} role="status" data-testid="share-lost">{ lost }</p>
            <div class="share-table" role="table" aria-label="Original and copy">
                <div class="share-row share-head" role="row">
                    <span role="columnheader">{ "Content" }</span>
                    <span role="columnheader">{ "In this trace" }</span>
                    <span role="columnheader">{ "In the copy" }</span>
                </div>
                { row("Events", "share-row-events", part_box(props), Html::from(Count(was_events).to_string()), Html::from(Count(is_events).to_string())) }
                { row("Devices", "share-row-devices", device_box(props), numbers(was_devices), numbers(is_devices)) }
                if let Some((was, is)) = started(origin, copy) {
                    { row("Start time", "share-row-start", Html::default(), Html::from(was), Html::from(is)) }
                }
                { for of_lists }
            </div>
            if contents.host_events > 0 {
                <p class="quiet">{ "Events of pinned host memory are left out: a recording has none." }</p>
            }
            if origin.devices > 1 && choices.is_part {
                <p class="quiet">{ format!("Includes device {} only.", origin.device) }</p>
            }
        </>
    }
}

/// Returns the size of the copy as text. The server writes what it receives anew, so the link's size can differ a little.
fn size(copy: &Copy, is_growing: bool) -> String {
    let Some(packed) = &copy.packed else { return "Measuring the copy".to_owned() };
    let so_far = if is_growing { " so far" } else { "" };
    format!("Copy size: about {}{so_far}", Bytes(packed.size() as u64))
}

/// Returns when the trace and the copy begin, if events have the times of a clock.
fn started(origin: &Origin, copy: &Copy) -> Option<(String, String)> {
    let device = origin.shown_device().filter(|device| device.has_times && device.start_us >= FIRST_CLOCK_US)?;
    let was = device.start_us.saturating_sub(origin.start.us as i64);
    let is = was.saturating_add(copy.moved?.us as i64);
    Some((Moment::at(was).to_minute(), Moment::at(is).to_minute()))
}

/// Renders a row: a name with its box, what the trace says, and what the copy says.
fn row(name: &'static str, test_id: &str, control: Html, was: Html, is: Html) -> Html {
    html! {
        <div class="share-row" role="row" data-testid={test_id.to_owned()}>
            <span role="rowheader"><b>{ name }</b>{ control }</span>
            <span role="cell" data-label="In this trace">{ was }</span>
            <span role="cell" data-label="In the copy">{ is }</span>
        </div>
    }
}

fn numbers(devices: &[i64]) -> Html {
    let numbers = devices.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let word = if devices.len() == 1 { "device" } else { "devices" };
    Html::from(format!("{} ({word} {numbers})", Count(devices.len() as u64)))
}

/// Renders the box that keeps only the shown part.
fn part_box(props: &LeavingProps) -> Html {
    let Some(shown) = &props.origin.shown else { return Html::default() };
    let label = if shown.is_range { "Only the selected range" } else { "Only the shown window" };
    check(props, "share-part", label.to_owned(), props.choices.is_part, |choices, is_on| choices.is_part = is_on)
}

/// Renders the box that keeps only the shown device.
fn device_box(props: &LeavingProps) -> Html {
    if props.origin.devices < 2 {
        return Html::default();
    }
    let label = format!("Only device {}", props.origin.device);
    check(props, "share-device", label, props.choices.is_device, |choices, is_on| choices.is_device = is_on)
}

fn check(props: &LeavingProps, id: &'static str, label: String, is_on: bool, change: Change) -> Html {
    let (choices, on_choices) = (props.choices.clone(), props.on_choices.clone());
    let onchange = Callback::from(move |event: Event| {
        if let Some(input) = event.target_dyn_into::<HtmlInputElement>() {
            let mut choices = choices.clone();
            change(&mut choices, input.checked());
            on_choices.emit(choices);
        }
    });
    html! {
        <label class="share-check"><input type="checkbox" checked={is_on} {onchange} data-testid={id} />{ label }</label>
    }
}
