//! The toolbar of the comparison: which run is A, and at which moment the two are compared.

use query::ComparedMoment;
use yew::prelude::*;

use super::own_steps::OwnMoments;
use super::panes::to_moments;
use super::{device_note, told_apart};
use crate::hooks::ModelHandle;
use crate::model::{Action, FileEntry, FileKey, Setting, is_trace};
use crate::source;
use crate::views::controls::{choice, sends};
use crate::widgets::icon::{Symbol, icon};
use crate::widgets::menu::Menu;
use crate::widgets::toolbar::Toolbar;

/// The run that is shown, as the base of a comparison with itself.
const ITSELF: &str = "this run, earlier";

/// Renders the toolbar.
pub fn toolbar(model: &ModelHandle) -> Html {
    let moment = model.view.settings.compared_moment;
    let name = |of: Option<(FileKey, u32)>| {
        of.and_then(|(key, device)| Some(shown_name(model.entry(key)?, device))).unwrap_or_default()
    };
    let [name_a, name_b] = told_apart(&name(model.base()), &name(model.current.map(|key| (key, model.view.device))));
    let is_itself = model.base().is_some_and(|base| model.current.map(|key| (key, model.view.device)) == Some(base));
    let name_a = if is_itself { ITSELF.to_owned() } else { name_a };
    let at = |wanted| sends(model, Action::Set(Setting::ComparedMoment(wanted)));
    let is = |wanted| moment == wanted;
    html! {
        <Toolbar label="Compare">
            <span class="compare-runs">
                <span class="compare-key is-a">{ "A" }</span>
                { base_menu(model, name_a) }
                <button type="button" class="icon-button" disabled={model.base().is_none() || is_itself} onclick={sends(model, Action::SwapBase)} aria-label="Swap A and B" title="Swap A and B (B)" data-testid="compare-swap">{ icon(Symbol::Swap) }</button>
                <span class="compare-key is-b">{ "B" }</span>
                <span class="compare-name" data-testid="compare-b">{ name_b }</span>
            </span>
            if is_itself {
                <OwnMoments />
            } else {
                <div class="choices" role="group" aria-label="Moment of the comparison">
                    { choice("moment-common", "Same step", "Compare the peak of the last step that both have; without steps, the peak of each", is(ComparedMoment::Common), at(ComparedMoment::Common)) }
                    { choice("moment-peak", "Peaks", "Compare the peak of each run", is(ComparedMoment::Peak), at(ComparedMoment::Peak)) }
                    { choice("moment-end", "Ends", "Compare the ends of the traces", is(ComparedMoment::End), at(ComparedMoment::End)) }
                    { choice("moment-cursor", "Cursors", "Compare where the cursor of each run is; a click on the chart below moves both", is(ComparedMoment::Cursor), at(ComparedMoment::Cursor)) }
                </div>
                { moments_menu(model) }
            }
        </Toolbar>
    }
}

/// Returns moments that both runs have, each with its position in A and in B.
fn shared_moments(model: &ModelHandle) -> Vec<(String, [u32; 2])> {
    let both = || {
        let (base, device) = model.base()?;
        let a = model.entry(base)?;
        // A file has the pins of one device.
        let pins = if model.current == Some(base) { &[] } else { a.view.pins.as_slice() };
        Some((a.summary()?.devices.get(device as usize)?, model.device()?, pins))
    };
    let Some((a, b, pins)) = both() else { return Vec::new() };
    let mut found = Vec::new();
    if a.peak_position <= b.events {
        found.push(("A's peak, B at the same event".to_owned(), [a.peak_position; 2]));
    }
    if b.peak_position <= a.events {
        found.push(("B's peak, A at the same event".to_owned(), [b.peak_position; 2]));
    }
    for pin in pins {
        let same = model.view.pins.iter().find(|other| other.name == pin.name);
        found.extend(same.map(|other| (format!("Pin “{}”", pin.name), [pin.position, other.position])));
    }
    found
}

/// Renders the menu of moments to which the cursors of both can go.
fn moments_menu(model: &ModelHandle) -> Html {
    let Some(of) = model.base().zip(model.current.map(|key| (key, model.view.device))) else { return Html::default() };
    let moments = shared_moments(model);
    if moments.is_empty() {
        return Html::default();
    }
    let go = |positions: [u32; 2]| {
        let (both, moment) = (
            to_moments(model, of.into(), positions),
            sends(model, Action::Set(Setting::ComparedMoment(ComparedMoment::Cursor))),
        );
        Callback::from(move |event: MouseEvent| {
            both.emit(event.clone());
            moment.emit(event);
        })
    };
    html! {
        <Menu label={html! { <span class="menu-label">{ "Peak or pin" }</span> }} name="Compare where one peaks, or at a pin of both" test_id="compare-moment">
            { for moments.into_iter().map(|(name, positions)| {
                html! { <button type="button" class="menu-row" onclick={go(positions)} data-testid="compare-moment-row"><span class="menu-label">{ name }</span></button> }
            }) }
        </Menu>
    }
}

/// Returns the name of a file, with the device if it has several.
fn shown_name(file: &FileEntry, device: u32) -> String {
    match file.summary().filter(|summary| summary.devices.len() > 1) {
        Some(summary) => {
            let number = summary.devices.get(device as usize).map_or(0, |device| device.device);
            format!("{}, device {number}", file.name)
        }
        None => file.name.clone(),
    }
}

/// Renders the menu of runs that can be A: every device of every open file, the one that is shown at another moment.
fn base_menu(model: &ModelHandle, name_a: String) -> Html {
    let base = model.base();
    let chosen =
        Some(name_a).filter(|name| !name.is_empty()).or_else(|| model.missing_base().map(|base| base.name.clone()));
    let rows = model.files.iter().filter(|file| is_trace(file)).flat_map(|file| {
        let devices = file.summary().map_or(1, |summary| summary.devices.len().max(1)) as u32;
        (0..devices).map(move |device| (file, device))
    });
    let own = model.current.map(|key| (key, model.view.device));
    let on_pick = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| source::pick(&model))
    };
    html! {
        <Menu label={html! { <span class="menu-label">{ chosen.unwrap_or_else(|| "choose a run".to_owned()) }</span> }} name="Run A" test_id="compare-base">
            { for rows.map(|(file, device)| {
                let of = (file.key, device);
                let note = file.summary().and_then(|summary| summary.devices.get(device as usize)).map(device_note);
                html! {
                    <button type="button" class="menu-row is-tall" key={format!("{}-{device}", file.key.0)} aria-current={(base == Some(of)).then_some("true")} onclick={sends(model, Action::SetBase(file.key, device))} title={file.name.clone()} data-testid="compare-base-row">
                        <span class="menu-label">{ if own == Some(of) { ITSELF.to_owned() } else { shown_name(file, device) } }</span>
                        <span class="menu-note">{ note }</span>
                    </button>
                }
            }) }
            <hr />
            <button type="button" class="menu-row" onclick={on_pick} data-testid="compare-base-open">{ "Open file…" }</button>
        </Menu>
    }
}
