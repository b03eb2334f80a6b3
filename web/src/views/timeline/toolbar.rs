//! The row of controls above the timeline: what colours stand for, what the x axis counts, what is fitted.

use shared::query::{Axis, ColorBy, Timeline};
use shared::units::Count;
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use crate::model::{Action, ModelHandle, use_model};

/// Each colouring with its name.
const COLORS: [(ColorBy, &str); 5] = [
    (ColorBy::Site, "call site"),
    (ColorBy::Size, "size"),
    (ColorBy::Stream, "stream"),
    (ColorBy::Pool, "pool"),
    (ColorBy::Lifetime, "lifetime"),
];

/// Properties of [`ColorMenu`].
#[derive(Properties, PartialEq)]
pub struct ColorMenuProps {
    /// The control's `data-testid`.
    pub testid: &'static str,
}

/// What colours stand for.
#[component]
pub fn ColorMenu(props: &ColorMenuProps) -> Html {
    let model = use_model();
    let select = use_node_ref();
    let onchange = {
        let (model, select) = (model.clone(), select.clone());
        Callback::from(move |_: Event| {
            let chosen = select.cast::<HtmlSelectElement>().map(|select| select.selected_index());
            let color = chosen.and_then(|i| usize::try_from(i).ok()).and_then(|i| COLORS.get(i));
            if let Some((color, _)) = color {
                model.dispatch(Action::SetColorBy(*color));
            }
        })
    };
    html! {
        <label class="toolbar-field">
            <span>{ "Colour by" }</span>
            <select ref={select} class="toolbar-select" data-testid={props.testid} {onchange}>
                { for COLORS.iter().map(|(color, name)| html! {
                    <option selected={model.view.color_by == *color}>{ *name }</option>
                }) }
            </select>
        </label>
    }
}

/// One of several that exclude each other.
pub fn choice(testid: &'static str, name: &'static str, title: &'static str, is_on: bool, choose: Callback<MouseEvent>) -> Html {
    html! {
        <button type="button" class="choice" aria-pressed={is_on.to_string()} {title} onclick={choose} data-testid={testid}>
            { name }
        </button>
    }
}

/// A callback that sends an action.
pub fn sends(model: &ModelHandle, action: impl Fn() -> Action + 'static) -> Callback<MouseEvent> {
    let model = model.clone();
    Callback::from(move |_| model.dispatch(action()))
}

/// Properties of [`Toolbar`].
#[derive(Properties, PartialEq)]
pub struct ToolbarProps {
    /// Whether the height is fitted to what was requested, not to what was reserved.
    pub fits_requested: bool,
    /// Called to change that.
    pub on_fit: Callback<bool>,
    /// What is drawn, in a few words.
    pub note: String,
}

/// The row of controls.
#[component]
pub fn Toolbar(props: &ToolbarProps) -> Html {
    let model = use_model();
    let (axis, has_times) = (model.view.axis, model.device().is_some_and(|device| device.has_times));
    let is_whole = model.view.window == model.extent() && model.view.bytes.is_none();
    let fit = |requested: bool| {
        let (on_fit, model) = (props.on_fit.clone(), model.clone());
        Callback::from(move |_| {
            on_fit.emit(requested);
            model.dispatch(Action::SetBytes(None));
        })
    };
    let (reserved, requested) = (!props.fits_requested, props.fits_requested);
    html! {
        <div class="canvas-toolbar" role="toolbar" aria-label="Timeline">
            <ColorMenu testid="timeline-color" />
            <div class="choices" role="group" aria-label="The x axis counts">
                if has_times {
                    { choice("axis-time", "Time", "The x axis counts time", axis == Axis::Time, sends(&model, || Action::SetAxis(Axis::Time))) }
                }
                { choice("axis-event", "Events", "The x axis counts events", axis == Axis::Event, sends(&model, || Action::SetAxis(Axis::Event))) }
            </div>
            <div class="choices" role="group" aria-label="The height fits">
                { choice("fit-reserved", "Reserved", "The height fits what is reserved", reserved, fit(false)) }
                { choice("fit-requested", "Requested", "The height fits what is requested", requested, fit(true)) }
            </div>
            <button type="button" class="toolbar-button" disabled={is_whole} title="Show the whole trace at its full height"
                onclick={sends(&model, || Action::FitAll)} data-testid="timeline-fit">
                { "Whole trace" }
            </button>
            <span class="toolbar-note" data-testid="timeline-note">{ &props.note }</span>
        </div>
    }
}

/// What an answer draws, in a few words.
pub fn note(timeline: &Timeline) -> String {
    let count = Count(u64::from(timeline.allocations)).to_string();
    let noun = if timeline.allocations == 1 { " allocation in view" } else { " allocations in view" };
    match timeline.detail {
        shared::query::Detail::Allocations => [&count, noun, ", each drawn"].concat(),
        shared::query::Detail::Classes => [&count, noun, ", summed by colour"].concat(),
    }
}
