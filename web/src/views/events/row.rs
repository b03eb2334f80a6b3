//! One row of the event list.

use shared::event::Action;
use shared::query::ListRow;
use shared::units::{Address, Bytes, Count};
use yew::prelude::*;

use super::glyph::glyph;
use super::lost::cells;
use crate::hooks::palette;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::format::seconds;

/// Properties of [`Row`].
#[derive(Properties, PartialEq)]
pub struct RowProps {
    /// The row's number, from 0.
    pub number: u32,
    /// The contents; a placeholder is shown until they arrive.
    pub shown: Option<ListRow>,
    /// Whether the cursor is just after it.
    pub is_cursor: bool,
    /// Whether it is about the selected allocation.
    pub is_selected: bool,
    /// Whether the trace has times.
    pub has_times: bool,
    /// Whether the theme is dark.
    pub is_dark: bool,
    /// Called with the contents when the row is clicked.
    pub on_pick: Callback<ListRow>,
}

/// One row of the event list.
#[component]
pub fn Row(props: &RowProps) -> Html {
    let class = classes!(
        "event-row",
        "event-cells",
        props.is_cursor.then_some("is-cursor"),
        props.is_selected.then_some("is-selected"),
    );
    let id = format!("event-row-{}", props.number);
    let index = (u64::from(props.number) + 2).to_string();
    let Some(shown) = &props.shown else {
        return html! {
            <div {id} {class} role="row" aria-rowindex={index} aria-busy="true">
                <span class="placeholder" /><span class="placeholder" /><span class="placeholder" />
            </div>
        };
    };
    let onclick = {
        let (shown, on_pick) = (shown.clone(), props.on_pick.clone());
        Callback::from(move |_| on_pick.emit(shown.clone()))
    };
    let event = match shown {
        ListRow::Event(event) => event,
        ListRow::Lost(loss) => {
            return html! {
                <div {id} class="event-row is-lost" role="row" aria-rowindex={index} {onclick} data-testid="event-row">
                    { cells(loss) }
                </div>
            };
        }
    };
    let action = Action::from_name(&event.action);
    html! {
        <div {id} {class} role="row" aria-rowindex={index} aria-selected={props.is_cursor.to_string()} {onclick}
            data-menu={format!("e{}", u64::from(event.index) + 1)} data-testid="event-row" data-event={event.index.to_string()}>
            <span role="gridcell" class="cell-number">{ Count(u64::from(event.index) + 1).to_string() }</span>
            <span role="gridcell" class="cell-number dim">{ if props.has_times { seconds(event.time_us) } else { "–".to_owned() } }</span>
            <span role="gridcell" class="cell-action">{ glyph(&event.action) }{ event.action.clone() }</span>
            <span role="gridcell" class="cell-number">{ bytes_text(event.size) }</span>
            <span role="gridcell" class="mono dim">{ place(action, event.address) }</span>
            <span role="gridcell" class="dim">{ event.stream.to_string() }</span>
            <span role="gridcell" class="cell-site" title={event.site.clone()}>
                if event.allocation.is_some() {
                    { paint_chip(&palette(props.is_dark), event.paint) }
                } else {
                    <span class="no-paint" />
                }
                <bdi>{ event.site.clone() }</bdi>
            </span>
        </div>
    }
}

/// Formats an event's address. An out-of-memory event has none: PyTorch writes the device's free bytes in its place.
fn place(action: Option<Action>, address: Address) -> String {
    match action {
        Some(Action::Oom) => format!("{} free", Bytes(address.0)),
        _ if address.0 == 0 => "–".to_owned(),
        _ => address.to_string(),
    }
}
