//! The details pane: describes the selection, or the event at the cursor.

mod allocation;
mod class;
mod facts;
mod lifetime;
mod line;
mod nothing;
mod pins;
mod range;
mod segment;
mod site;

use allocation::AllocationPane;
pub use allocation::{frame_term, search_term};
use class::ClassPane;
pub use lifetime::{still_live, window_of};
use line::LinePane;
use nothing::NothingPane;
pub use nothing::select_here;
use pins::PinsPane;
pub use pins::{go_to_pin, pin_of_allocation, pin_of_moment};
use range::RangePane;
use segment::SegmentPane;
use site::SitePane;
use yew::prelude::*;

use crate::hooks::use_model_of;
use crate::model::{Action, Parts, Selection, Tab};
use crate::views::folding::stack_settings;
use crate::views::key::key;
use crate::views::legend::Legend;
use crate::widgets::stack_list::StackSettings;

/// The details pane.
#[component]
pub fn Details() -> Html {
    let model = use_model_of(Parts::PLACE);
    let selection = model.view.selection;
    let range = model.view.extended_range();
    let clear = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::Select(Selection::None)))
    };
    // What held the memory, which is also the key to the colours, comes before everything else.
    let is_first = selection == Selection::None && range.is_none();
    let is_awaited = model.device().is_some_and(|device| device.events > 0);
    let legend = html! { <div class={classes!("peak-legend", is_awaited.then_some("is-awaited"))}><Legend /></div> };
    let title = match selection {
        Selection::None if range.is_some() => "Range",
        Selection::None => "Details",
        Selection::Allocation(_) => "Allocation",
        Selection::Site(_) => "Stack",
        Selection::Line(_) => "Call site",
        Selection::Segment(_) => "Segment",
        Selection::Class(_) => "Group",
    };
    html! {
        <ContextProvider<StackSettings> context={stack_settings(&model)}>
        <div class="details" data-testid="details">
            <header class="details-head">
                <h2>{ title }</h2>
                if selection != Selection::None {
                    <button type="button" class="icon-button" onclick={clear} aria-label="Clear selection" title="Clear selection (Esc)" data-testid="details-clear">
                        <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path d="M2.5 2.5 9.5 9.5M9.5 2.5 2.5 9.5" /></svg>
                    </button>
                }
            </header>
            // Each part keeps an element of its own: the parts come and go, and one that renders by itself needs its place.
            <div>if is_first { { legend.clone() } }</div>
            <div>{ match selection {
                Selection::None => match range {
                    Some(range) => html! { <RangePane {range} /> },
                    None => html! { <NothingPane /> },
                },
                Selection::Allocation(id) => html! { <AllocationPane {id} /> },
                Selection::Site(stack) => html! { <SitePane {stack} /> },
                Selection::Line(stack) => html! { <LinePane {stack} /> },
                Selection::Segment(address) => html! { <SegmentPane {address} /> },
                Selection::Class(index) => html! { <ClassPane {index} /> },
            } }</div>
            <PinsPane />
            // The legend helps to pick a class, or the next one.
            <div>
                if !is_first && matches!(selection, Selection::None | Selection::Site(_) | Selection::Line(_) | Selection::Class(_)) {
                    { legend }
                }
            </div>
            if model.view.tab == Tab::Timeline {
                { key(&model) }
            }
            if selection == Selection::None && range.is_none() && model.device().is_some() {
                <p class="hint">{ "Click an allocation, block or row to see its size, lifetime and stack, or press Enter for what the event at the cursor is about." }</p>
            }
        </div>
        </ContextProvider<StackSettings>>
    }
}
