//! One row of the event list.

use std::rc::Rc;

use query::link::column_name;
use query::{EventColumn, EventRow, ListRow, Related, stream_name};
use trace::event::Action;
use trace::units::{Address, Count, Stream};
use yew::prelude::*;

use super::columns::is_number;
use super::glyph::glyph;
use super::lost::cells;
use crate::render::palette::Palette;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::format::seconds;
use crate::widgets::icon::{Symbol, icon};
use crate::widgets::site_text::site_text;

/// What a person wants to do with a row.
#[derive(Clone, Debug, PartialEq)]
pub enum RowAction {
    /// Move the cursor there.
    Stand(ListRow),
    /// Copy the event with this index as text.
    Copy(u32),
    /// Go to the other event of its allocation, given the position after that event.
    Partner(ListRow, u32),
}

/// Properties of [`Row`].
#[derive(Properties, PartialEq)]
pub struct RowProps {
    /// The row's number, from 0.
    pub number: u32,
    /// The contents; a placeholder is shown until they arrive.
    pub shown: Option<ListRow>,
    /// The columns.
    pub columns: Vec<EventColumn>,
    /// Whether the cursor is just after it.
    pub is_cursor: bool,
    /// Whether it is about the selected allocation.
    pub is_selected: bool,
    /// Whether the trace has times.
    pub has_times: bool,
    /// The streams of the device, which have short names.
    pub streams: Rc<[Stream]>,
    /// The colours of lines.
    pub palette: Rc<Palette>,
    /// Called when the row or one of its buttons is clicked.
    pub on_action: Callback<RowAction>,
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
    let action = |action: RowAction| {
        let on_action = props.on_action.clone();
        Callback::from(move |event: MouseEvent| {
            event.stop_propagation();
            on_action.emit(action.clone());
        })
    };
    let onclick = action(RowAction::Stand(shown.clone()));
    let (event, related) = match shown {
        ListRow::Event(event, related) => (event, *related),
        ListRow::Lost(loss) => {
            return html! {
                <div {id} class="event-row is-lost" role="row" aria-rowindex={index} {onclick} data-testid="event-row">
                    { cells(loss) }
                </div>
            };
        }
    };
    let partner = related.partner.map(|position| {
        let title = partner_title(event, position);
        html! {
            <button type="button" class="row-button" tabindex="-1" title={title.clone()} aria-label={title}
                onclick={action(RowAction::Partner(shown.clone(), position))} data-testid="event-partner">
                { icon(Symbol::Partner) }
            </button>
        }
    });
    html! {
        <div {id} {class} role="row" aria-rowindex={index} aria-selected={props.is_cursor.to_string()} {onclick}
            data-menu={format!("e{}", u64::from(event.index) + 1)} data-testid="event-row" data-event={event.index.to_string()}>
            { for props.columns.iter().map(|column| cell(props, *column, event, related)) }
            <span role="gridcell" class="cell-buttons">
                <button type="button" class="row-button is-copy" tabindex="-1" title="Copy this event (Ctrl+C)" aria-label="Copy this event"
                    onclick={action(RowAction::Copy(event.index))} data-testid="event-copy">{ icon(Symbol::Copy) }</button>
                { partner }
            </span>
        </div>
    }
}

/// Returns the title of the button that goes to the other event.
fn partner_title(event: &EventRow, position: u32) -> String {
    let of = if Action::from_name(&event.action) == Some(Action::Alloc) { "free" } else { "alloc" };
    format!("Go to its {of}, event {} (E)", Count(position.into()))
}

fn cell(props: &RowProps, column: EventColumn, event: &EventRow, related: Related) -> Html {
    let text = match column {
        EventColumn::Number => Count(u64::from(event.index) + 1).to_string(),
        EventColumn::Time | EventColumn::Since if !props.has_times => "–".to_owned(),
        EventColumn::Time => seconds(event.time_us),
        EventColumn::Since => related.since_us.map_or_else(|| "–".to_owned(), milliseconds),
        EventColumn::Action => event.action.clone(),
        EventColumn::Size => String::new(),
        EventColumn::Address => place(Action::from_name(&event.action), event.address),
        EventColumn::Stream if event.stream == Stream::default() => event.stream.to_string(),
        EventColumn::Stream => stream_name(event.stream, &props.streams),
        EventColumn::Site => event.site.clone(),
    };
    let key = column_name(column);
    let class = match column {
        EventColumn::Action => "cell-action",
        EventColumn::Site => "cell-site",
        EventColumn::Address => "mono dim",
        EventColumn::Time | EventColumn::Since => "cell-number dim",
        EventColumn::Stream => "dim",
        _ if is_number(column) => "cell-number",
        _ => "",
    };
    let title = match column {
        EventColumn::Site => Some(text.clone()),
        EventColumn::Stream if event.stream != Stream::default() => {
            Some(format!("{text}: recorded as {}", event.stream.0))
        }
        _ => None,
    };
    html! {
        <span role="gridcell" {key} {class} {title} data-column={key}>
            if column == EventColumn::Action { { glyph(&event.action) } }
            if column == EventColumn::Size { { bytes_text(event.size) } }
            if column == EventColumn::Site {
                if event.allocation.is_some() {
                    { paint_chip(&props.palette, event.paint) }
                } else {
                    <span class="no-paint" />
                }
                { site_text(&text) }
            } else {
                { text }
            }
        </span>
    }
}

/// Formats microseconds as milliseconds with three decimals.
fn milliseconds(us: f64) -> String {
    let us = us.round().max(0.0) as u64;
    format!("{}.{:03}", Count(us / 1_000), us % 1_000)
}

/// Formats an event's address. An out-of-memory event has none: PyTorch writes the device's free bytes in its place.
fn place(action: Option<Action>, address: Address) -> String {
    if action == Some(Action::Oom) || address.0 == 0 { "–".to_owned() } else { address.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_line_up() {
        assert_eq!([0.0, 7.4, 1_234.0, 12_345_678.0].map(milliseconds), ["0.000", "0.007", "1.234", "12,345.678"]);
    }
}
