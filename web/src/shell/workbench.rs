//! A file that has been read: overview, tabs, one view, the details beside it, and the status line.

use yew::prelude::*;

use super::details_pane::DetailsPane;
use super::live_bar::live_bar;
use super::tabs::{PANEL_ID, tabs};
use crate::browser::after_next_frame;
use crate::hooks::use_model;
use crate::model::{Action, Tab};
use crate::views::events::Events;
use crate::views::findings::Findings;
use crate::views::flame::Flame;
use crate::views::overview::Overview;
use crate::views::search::FilterChips;
use crate::views::segments::Segments;
use crate::views::status::Status;
use crate::views::text_twin::TextTwin;
use crate::views::timeline::Timeline;

/// The panes.
#[component]
pub fn Workbench() -> Html {
    let model = use_model();
    let tab = model.view.tab;
    {
        // The findings are whole as soon as they are there; every other view waits for an answer.
        let model = model.clone();
        use_effect_with(tab, move |tab| {
            if *tab == Tab::Findings {
                after_next_frame(move || model.dispatch(Action::FirstPicture));
            }
        });
    }
    {
        let (model, is_paused) = (model.clone(), model.live().is_some_and(|live| live.is_paused));
        use_effect_with((model.current, is_paused), move |(key, is_paused)| {
            if let Some(key) = *key {
                model.workers().hold(key, *is_paused);
            }
        });
    }
    // What is beside the picture comes a moment after it: all of it at once is a long task for a browser that has run
    // none of this before.
    let is_settled = use_state_eq(|| false);
    {
        let is_settled = is_settled.setter();
        use_effect_with((), move |()| after_next_frame(move || is_settled.set(true)));
    }
    let view = match tab {
        Tab::Timeline => html! { <Timeline /> },
        Tab::Segments => html! { <Segments /> },
        Tab::Flame => html! { <Flame /> },
        Tab::Events => html! { <Events /> },
        Tab::Findings => html! { <Findings /> },
    };
    html! {
        <main class="workbench">
            { live_bar(&model) }
            if model.device().is_some() {
                <div class="overview-pane"><Overview /></div>
            }
            { tabs(&model) }
            <FilterChips />
            <div class="panes">
                <div id={PANEL_ID} class="view-pane" role="tabpanel" aria-labelledby={format!("tab-{}", tab.name())}>
                    { view }
                </div>
                <DetailsPane is_filled={*is_settled} />
            </div>
            <Status />
            if *is_settled {
                <TextTwin />
            }
        </main>
    }
}
