//! The what-if tab: the same requests under other settings, on other devices, and the search for better settings.

mod chart;
mod check;
mod fit;
mod form;
mod lines;
mod plot;
mod runs;
mod tune;

pub use lines::{RunLines, use_lines_over};
use query::diagnosis::Cause;
use query::line_in_sentence;
use yew::prelude::*;

use crate::browser::use_effect_with;
use crate::hooks::{ModelHandle, open_whatif, use_model_of};
use crate::model::Parts;
use crate::views::controls::use_first_picture;
use crate::views::status::no_events_view;

/// Returns the line that keeps what it allocates, if the verdict is about one.
fn leaking_line(model: &ModelHandle) -> Option<String> {
    let verdict = &model.diagnosis()?.verdict;
    let leaks = verdict.cause == Cause::Leak || verdict.cause == Cause::None && verdict.is_growing;
    verdict.line.clone().filter(|_| leaks)
}

/// The what-if tab.
#[component]
pub fn WhatIfView() -> Html {
    let model = use_model_of(Parts::REST);
    // Nothing is awaited: what a run comes to is shown as it becomes known.
    use_first_picture(&model, true);
    let marked = use_state_eq(|| None::<u32>);
    // A single event is the snapshot itself.
    let has_events = model.device().is_some_and(|device| device.events > 1);
    {
        let is_new = model.whatif().is_none();
        let handle = model.clone();
        use_effect_with((model.current, model.view.device, is_new && has_events), move |(_, _, is_new)| {
            if *is_new {
                open_whatif(&handle);
            }
        });
    }
    if !has_events {
        return no_events_view(&model);
    }
    let Some(whatif) = model.whatif() else { return Html::default() };
    html! {
        <div class="whatif" data-testid="whatif">
            if let Some(line) = leaking_line(&model) {
                <p class="whatif-check" role="note" data-testid="whatif-leak"><span class="whatif-warning">{ "This run leaks; settings only delay it. " }</span>{ "Look at " }{ line_in_sentence(&line) }{ " first." }</p>
            }
            { check::check_line(&model, whatif) }
            if whatif.opened.is_some() {
                <chart::Chart marked={*marked} />
                <div class="whatif-page">
                    { fit::section(whatif) }
                    <tune::TuneSection />
                    { runs::table(&model, whatif, &marked) }
                    { form::settings(&model) }
                </div>
            }
        </div>
    }
}
