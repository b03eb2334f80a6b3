//! The columns of the event list: which are shown, their widths, and the head, which sorts the list.

use query::link::column_name;
use query::{EventColumn, EventOrder};
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::Action;
use crate::views::controls::sends;
use crate::widgets::menu::Menu;
use crate::widgets::style::pixels;

/// The columns of a list that is narrower than this many pixels are narrow.
const NARROW: f64 = 900.0;
/// The least width of the call site's column in pixels.
const LEAST_SITE: f64 = 160.0;
/// The columns that are hidden where there is little room, in this order.
const DISPENSABLE: [EventColumn; 4] =
    [EventColumn::Since, EventColumn::Stream, EventColumn::Address, EventColumn::Time];
/// The width of a row's buttons, and that of the padding of both sides together, in pixels.
const BUTTONS: f64 = 44.0;
const PADDING: f64 = 24.0;

/// Returns the title of a column.
pub fn title(column: EventColumn) -> &'static str {
    match column {
        EventColumn::Number => "#",
        EventColumn::Time => "Time (s)",
        EventColumn::Since => "Since (ms)",
        EventColumn::Action => "Action",
        EventColumn::Size => "Size",
        EventColumn::Address => "Address",
        EventColumn::Stream => "Stream",
        EventColumn::Site => "Call site",
    }
}

/// Returns the description of a column, for menus and tooltips.
fn name(column: EventColumn) -> &'static str {
    match column {
        EventColumn::Number => "Number",
        EventColumn::Time => "Time in seconds",
        EventColumn::Since => "Milliseconds since the previous event",
        EventColumn::Action => "Action",
        EventColumn::Size => "Size",
        EventColumn::Address => "Address",
        EventColumn::Stream => "Stream",
        EventColumn::Site => "Call site",
    }
}

/// Returns whether a column's cells are numbers, which are aligned to the right.
pub fn is_number(column: EventColumn) -> bool {
    matches!(column, EventColumn::Number | EventColumn::Time | EventColumn::Since | EventColumn::Size)
}

/// Returns the width of a column in pixels.
fn width(column: EventColumn, is_narrow: bool) -> f64 {
    let (wide, narrow) = match column {
        EventColumn::Number => (84.0, 68.0),
        EventColumn::Time => (96.0, 88.0),
        EventColumn::Since => (80.0, 72.0),
        EventColumn::Action => (132.0, 124.0),
        EventColumn::Size => (80.0, 72.0),
        EventColumn::Address => (116.0, 108.0),
        EventColumn::Stream => (64.0, 52.0),
        EventColumn::Site => (LEAST_SITE, LEAST_SITE),
    };
    if is_narrow { narrow } else { wide }
}

/// Returns the columns that fit into a width in pixels, and the CSS `grid-template-columns` for them.
pub fn fitting(hidden: &[EventColumn], available: f64) -> (Vec<EventColumn>, String) {
    let mut shown: Vec<EventColumn> = EventColumn::ALL.into_iter().filter(|column| !hidden.contains(column)).collect();
    let is_narrow = available < NARROW;
    let gap = if is_narrow { 12.0 } else { 16.0 };
    let needed = |shown: &[EventColumn]| {
        shown.iter().map(|column| width(*column, is_narrow) + gap).sum::<f64>() + BUTTONS + PADDING
    };
    for column in DISPENSABLE {
        if needed(&shown) <= available {
            break;
        }
        shown.retain(|other| *other != column || shown_alone(hidden));
    }
    let mut template = String::new();
    for column in &shown {
        match column {
            EventColumn::Site => template += "minmax(0, 1fr) ",
            column => template.extend([&pixels(width(*column, is_narrow)), " "]),
        }
    }
    // Without call sites, the buttons take the rest of the width.
    let last = if shown.contains(&EventColumn::Site) { pixels(BUTTONS) } else { "minmax(0, 1fr)".to_owned() };
    (shown, template + &last)
}

/// Returns whether a single column is left, which is shown however narrow the list is.
fn shown_alone(hidden: &[EventColumn]) -> bool {
    hidden.len() + 1 == EventColumn::ALL.len()
}

/// Returns the order after a press on a column's head: ascending, then descending, then by time.
pub fn pressed(order: EventOrder, by: EventColumn) -> EventOrder {
    match order {
        EventOrder { by: known, is_falling: false } if known == by => EventOrder { by, is_falling: true },
        EventOrder { by: known, is_falling: true } if known == by => EventOrder::default(),
        _ => EventOrder { by, is_falling: false },
    }
}

/// Renders the head of the list.
pub fn head(model: &ModelHandle, shown: &[EventColumn]) -> Html {
    let order = model.view.settings.event_order;
    let cells = shown.iter().map(|&column| {
        let onclick = {
            let model = model.clone();
            Callback::from(move |_| model.dispatch(Action::SetEventOrder(pressed(order, column))))
        };
        let is_by = order.by == column;
        let sort = match (is_by, order.is_falling) {
            (true, true) => "descending",
            (true, false) => "ascending",
            (false, _) => "none",
        };
        let class = is_number(column).then_some("cell-number");
        let arrow = if order.is_falling { " ↓" } else { " ↑" };
        html! {
            <span key={column_name(column)} role="columnheader" aria-sort={sort} {class}>
                <button type="button" class="event-sort" tabindex="-1" {onclick} title={format!("Sort by {}", name(column))}
                    data-testid={format!("sort-{}", column_name(column))}>
                    { title(column) }
                    if is_by { <span aria-hidden="true">{ arrow }</span> }
                </button>
            </span>
        }
    });
    html! { <div class="event-head event-cells" role="row" aria-rowindex="1">{ for cells }<span role="columnheader"><span class="visually-hidden">{ "Buttons" }</span></span></div> }
}

/// Renders the menu that shows, hides and sorts by columns.
/// `fitting` are those that have room.
pub fn column_menu(model: &ModelHandle, fitting: &[EventColumn]) -> Html {
    let hidden = &model.view.settings.hidden_columns;
    let order = model.view.settings.event_order;
    let rows = EventColumn::ALL.into_iter().map(|column| {
        let is_shown = !hidden.contains(&column);
        let toggle = sends(model, Action::ToggleEventColumn(column));
        let sort = sends(model, Action::SetEventOrder(pressed(order, column)));
        html! {
            <div class="column-row" key={column_name(column)} data-keep-open="">
                <button type="button" class="menu-row" role="menuitemcheckbox" aria-checked={is_shown.to_string()} onclick={toggle}
                    data-testid={format!("column-{}", column_name(column))}>
                    <span>{ if is_shown { "✓ " } else { "\u{2003}" } }{ name(column) }</span>
                    if is_shown && !fitting.contains(&column) {
                        <span class="menu-note">{ "no room" }</span>
                    }
                </button>
                <button type="button" class="menu-row column-sort" onclick={sort} aria-label={format!("Sort by {}", name(column))}>
                    { if order.by != column { "Sort" } else if order.is_falling { "↓" } else { "↑" } }
                </button>
            </div>
        }
    });
    html! {
        <Menu label={html! { <span class="menu-label">{ "Columns" }</span> }} name="Columns" test_id="events-columns">
            { for rows }
        </Menu>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_the_call_site_its_room() {
        let all = fitting(&[], 1_100.0);
        assert_eq!(all.0, EventColumn::ALL);
        assert_eq!(all.1, "84px 96px 80px 132px 80px 116px 64px minmax(0, 1fr) 44px");
        for available in [300.0, 420.0, 560.0, 700.0, 860.0, 1_000.0, 1_400.0] {
            let (shown, _) = fitting(&[], available);
            let fixed = shown.iter().map(|column| width(*column, available < NARROW) + 16.0).sum::<f64>();
            assert!(shown.len() == 4 || fixed + BUTTONS + PADDING <= available + 40.0, "{available}: {shown:?}");
            assert!(shown.contains(&EventColumn::Site) && shown.contains(&EventColumn::Number));
        }
        assert!(!fitting(&[], 860.0).0.contains(&EventColumn::Since), "it goes first");
    }

    #[test]
    fn hidden_columns_are_left_out_and_the_last_one_stays() {
        let (shown, template) = fitting(&[EventColumn::Site, EventColumn::Stream], 1_400.0);
        assert!(!shown.contains(&EventColumn::Site) && !shown.contains(&EventColumn::Stream));
        assert!(template.ends_with("116px minmax(0, 1fr)"), "{template}");
        let but_since: Vec<_> = EventColumn::ALL.into_iter().filter(|column| *column != EventColumn::Since).collect();
        assert_eq!(fitting(&but_since, 10.0).0, [EventColumn::Since]);
    }

    #[test]
    fn a_head_is_pressed_three_times() {
        let by = EventColumn::Size;
        let rising = pressed(EventOrder::default(), by);
        let falling = pressed(rising, by);
        assert_eq!(
            (rising, falling.is_falling, pressed(falling, by)),
            (EventOrder { by, is_falling: false }, true, EventOrder::default())
        );
        assert_eq!(pressed(falling, EventColumn::Address), EventOrder { by: EventColumn::Address, is_falling: false });
        assert!(pressed(EventOrder::default(), EventColumn::Number).is_falling, "the newest first at the first press");
    }
}
