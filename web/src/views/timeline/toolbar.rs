//! The toolbar of the timeline: colouring, x axis, and fit.

use query::{Axis, Detail};
use trace::units::counted;
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::{Action, Setting};
use crate::views::controls::{choice, color_menu, sends};
use crate::widgets::toolbar::Toolbar;

/// What [`toolbar`] needs.
pub struct ToolbarProps {
    /// Whether the trace has steps to compare.
    pub has_steps: bool,
    /// A short description of what is drawn.
    pub note: String,
}

/// The toolbar of the timeline.
pub fn toolbar(model: &ModelHandle, props: &ToolbarProps) -> Html {
    let (axis, has_times) = (model.view.axis, model.device().is_some_and(|device| device.has_times));
    let is_whole = model.view.window == model.extent() && model.view.zooms.bytes.is_none();
    let fit = |requested: bool| sends(model, Action::Set(Setting::FitsRequested(requested)));
    let (reserved, requested) = (!model.view.settings.fits_requested, model.view.settings.fits_requested);
    html! {
        <Toolbar label="Timeline">
            { color_menu("timeline-color", model) }
            <div class="choices" role="group" aria-label="X axis">
                if has_times {
                    { choice("axis-time", "Time", "Show time on the x axis", axis == Axis::Time, sends(model, Action::SetAxis(Axis::Time))) }
                }
                { choice("axis-event", "Events", "Show event numbers on the x axis", axis == Axis::Event, sends(model, Action::SetAxis(Axis::Event))) }
            </div>
            <div class="toolbar-field">
                <span>{ "Height" }</span>
                <div class="choices" role="group" aria-label="Fit height to">
                    { choice("fit-reserved", "reserved", "Fit the height to reserved memory", reserved, fit(false)) }
                    { choice("fit-requested", "requested", "Fit the height to requested memory", requested, fit(true)) }
                </div>
            </div>
            <button type="button" class="toolbar-button" disabled={is_whole} title="Show the whole trace at its full height"
                onclick={sends(model, Action::FitAll)} data-testid="timeline-fit">
                { "Whole trace" }
            </button>
            { choice("curves-toggle", "Fragmentation", "Show curves of fragmentation below the timeline", !model.view.settings.curves.is_empty(), sends(model, Action::ToggleCurves)) }
            if props.has_steps {
                <button type="button" class="toolbar-button" title="Compare two steps: what the later one holds more (C)"
                    onclick={sends(model, Action::CompareSteps(None))} data-testid="compare-steps">
                    { "Compare steps" }
                </button>
            }
            <span class="toolbar-note" title="Where they are grouped, zoom in to see each one" data-testid="timeline-note">{ &props.note }</span>
        </Toolbar>
    }
}

/// Describes how many allocations are in view, and how they are drawn.
pub fn note(allocations: u32, detail: Detail) -> String {
    let allocations = counted(allocations.into(), "allocation");
    match detail {
        Detail::Allocations => format!("{allocations} in view"),
        Detail::Classes => format!("{allocations} in view, grouped"),
    }
}
