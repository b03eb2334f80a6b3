//! What leaves: what the trace says and what its copy says, and the boxes that decide about it.

use std::collections::BTreeSet;

use shared::redaction::{Contents, Paths};
use shared::units::{Bytes, Count, counted};
use web_sys::{HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

use super::choices::{Choices, PATHS};
use super::origin::Origin;
use super::use_copy::Copy;

/// Examples of names that are shown.
const EXAMPLES: usize = 3;
/// The most characters of an example.
const EXAMPLE_CHARS: usize = 60;

/// Properties of [`Leaving`].
#[derive(PartialEq, Properties)]
pub struct LeavingProps {
    /// The trace.
    pub origin: std::rc::Rc<Origin>,
    /// The size of its file; 0 for a session.
    pub bytes: u64,
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
#[component]
pub fn Leaving(props: &LeavingProps) -> Html {
    let LeavingProps { origin, copy, choices, .. } = props;
    let Some(contents) = &copy.contents else {
        return html! { <p class="share-wait" role="status">{ "Looking at what the trace says…" }</p> };
    };
    let (before, after) = &**contents;
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
        _ => html! { <span class="share-follows">{ "See folders" }</span> },
    };
    let of_lists = before.lists().into_iter().zip(after.lists()).map(|((name, was), (_, is))| {
        let test_id = format!("share-row-{}", name.to_lowercase().replace(' ', "-"));
        row(name, &test_id, controls(name, was.is_empty()), list(was, false), list(is, !was.is_empty()))
    });
    html! {
        <>
            <p class="share-size" aria-live="polite" data-testid="share-size">
                <strong>{ size(copy) }</strong>{ ", " }{ counted(after.events, "event") }{ " of " }
                { counted(after.devices.len() as u64, "device") }
                if props.bytes > 0 { <span class="quiet">{ format!(" (the file: {})", Bytes(props.bytes)) }</span> }
            </p>
            <div class="share-table" role="table" aria-label="What the trace says, and what its copy says">
                <div class="share-row share-head" role="row">
                    <span role="columnheader">{ "What it says" }</span>
                    <span role="columnheader">{ "This trace" }</span>
                    <span role="columnheader">{ "What leaves" }</span>
                </div>
                { row("Events", "share-row-events", part_box(props), Html::from(Count(before.events).to_string()), Html::from(Count(after.events).to_string())) }
                { row("Devices", "share-row-devices", device_box(props), numbers(before), numbers(after)) }
                { for of_lists }
            </div>
            if before.host_events > 0 {
                <p class="quiet">{ "Events of pinned host memory are left out: a recording has none." }</p>
            }
            if origin.devices > 1 && choices.is_part {
                <p class="quiet">{ format!("The part is of device {}.", origin.device) }</p>
            }
        </>
    }
}

/// Returns the size of the copy as text.
fn size(copy: &Copy) -> String {
    match copy.size() {
        None => "Measuring the size".to_owned(),
        Some((bytes, true)) => Bytes(bytes).to_string(),
        Some((bytes, false)) => format!("about {}", Bytes(bytes)),
    }
}

/// Renders a row: a name with its box, what the trace says, and what the copy says.
fn row(name: &'static str, test_id: &str, control: Html, was: Html, is: Html) -> Html {
    html! {
        <div class="share-row" role="row" data-testid={test_id.to_owned()}>
            <span role="rowheader"><b>{ name }</b>{ control }</span>
            <span role="cell" data-label="This trace">{ was }</span>
            <span role="cell" data-label="What leaves">{ is }</span>
        </div>
    }
}

/// Renders a list: how many items, and the first ones.
fn list(items: &BTreeSet<String>, is_left_out: bool) -> Html {
    if items.is_empty() {
        return html! { <span class="share-none">{ if is_left_out { "left out" } else { "none" } }</span> };
    }
    let some: Vec<String> = items.iter().take(EXAMPLES).map(|item| shortened(item)).collect();
    let more = items.len().saturating_sub(EXAMPLES);
    html! {
        <>
            { Count(items.len() as u64).to_string() }{ ": " }
            <span class="share-examples">{ some.join(", ") }</span>
            if more > 0 { { format!(" and {} more", Count(more as u64)) } }
        </>
    }
}

/// Returns an example on one line. Its end stays, which tells paths apart.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let count = line.chars().count();
    if count <= EXAMPLE_CHARS {
        line
    } else {
        format!("…{}", line.chars().skip(count - EXAMPLE_CHARS).collect::<String>())
    }
}

fn numbers(contents: &Contents) -> Html {
    let numbers = contents.devices.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let word = if contents.devices.len() == 1 { "device" } else { "devices" };
    Html::from(format!("{} ({word} {numbers})", Count(contents.devices.len() as u64)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_end() {
        assert_eq!(shortened("a\nb"), "a b");
        let long = format!("/start/{}/end", "x".repeat(100));
        let short = shortened(&long);
        assert_eq!(short.chars().count(), EXAMPLE_CHARS + 1);
        assert!(short.starts_with('…') && short.ends_with("/end"));
    }
}
