//! The table of allocations: what is live at the cursor or at the peak, the largest first. Allocations of one size from one
//! call site share a row: `80 × 49.1 MiB`.

use query::link::allocation_order_name;
use query::{AllocationOrder, AllocationRow, AllocationRows, AllocationsQuery, Answer, FreedBy, Query};
use trace::units::{Bytes, Count, counted};
use yew::prelude::*;

use super::controls::{sends, use_first_picture};
use super::description::{Description, ROWS};
use super::details::still_live;
use super::moment::{listing_control, moment_text};
use crate::browser::use_effect_with;
use crate::hooks::{ModelHandle, palette, use_answer, use_baseline, use_model_of};
use crate::model::{Action, Listing, Live, Model, Parts, Selection, Setting};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::{paint_chip, toggle};
use crate::widgets::empty::empty;
use crate::widgets::format::{duration, moment};
use crate::widgets::site_text::site_text;
use crate::widgets::toolbar::Toolbar;
use crate::widgets::virtual_list::use_virtual_list;

/// Rows are requested in pages that start at a multiple of this, with as many beyond the visible ones.
const PAGE_ROWS: u32 = 64;

/// What a screen reader hears of the table.
pub const DESCRIPTION: Description = Description {
    question: |model, _| question(model, 0, ROWS as u32),
    text: |_, known| {
        let Some(Answer::Allocations(table)) = known.answer else { return String::new() };
        let largest = table.rows.iter().take(3).map(|row| format!("{} by {}", size_text(row), row.label));
        let total = Bytes(table.total.bytes);
        format!(
            "{}, {total}. {}. ",
            counted(table.total.count.into(), "allocation"),
            largest.collect::<Vec<_>>().join("; ")
        )
    },
};

/// Returns the question for some rows of the table; `None` without a device.
fn question(model: &Model, first: u32, count: u32) -> Option<Query> {
    let (view, device) = (&model.view, model.device()?);
    let settings = &view.settings;
    Some(Query::Allocations(AllocationsQuery {
        moments: view.moments(device.peak_position),
        filter: view.filter.clone(),
        order: settings.allocation_order,
        is_reversed: settings.allocations_reversed,
        is_folded: settings.folds_allocations,
        first,
        count,
    }))
}

/// The allocations tab.
#[component]
pub fn Allocations() -> Html {
    let model = use_model_of(Parts::PLACE);
    use_baseline(&model);
    let view = &model.view;
    // The row that keys move from.
    let at = use_state_eq(|| None::<u32>);
    let known_rows = use_mut_ref(|| 0);
    let list = use_virtual_list(*known_rows.borrow(), *at, false);
    let first = list.visible.start.saturating_sub(PAGE_ROWS) / PAGE_ROWS * PAGE_ROWS;
    let end = list.visible.end.saturating_add(PAGE_ROWS).div_ceil(PAGE_ROWS).saturating_mul(PAGE_ROWS);
    let answer = use_answer(question(&model, first, end.saturating_sub(first)));
    use_first_picture(&model, matches!(answer.as_deref(), Some(Answer::Allocations(_) | Answer::Refused(_))));
    let again = use_force_update();
    let table = match answer.as_deref() {
        Some(Answer::Allocations(table)) => Some(table),
        _ => None,
    };
    if let Some(table) = table
        && known_rows.replace(table.table_rows) != table.table_rows
    {
        again.force_update();
    }
    {
        // Another table is read from its top.
        let (list, at) = (list.clone(), at.clone());
        let settings = &view.settings;
        let order = (settings.allocation_order, settings.allocations_reversed, settings.folds_allocations);
        use_effect_with((order, view.filter.clone()), move |_| {
            at.set(None);
            list.to_top();
        });
    }
    let Some(device) = model.device() else { return Html::default() };
    let onkeydown = {
        let (model, at, answer, list) = (model.clone(), at.clone(), answer.clone(), list.clone());
        Callback::from(move |event: KeyboardEvent| {
            let Some(Answer::Allocations(table)) = answer.as_deref() else { return };
            let Some(target) = list.step(&event, *at) else { return };
            at.set(Some(target));
            if let Some(row) = row_at(table, target) {
                model.dispatch(Action::Select(subject(row)));
            }
        })
    };
    let refused = match answer.as_deref() {
        Some(Answer::Refused(sentence)) => Some(sentence.clone()),
        _ => None,
    };
    let is_folded = view.settings.folds_allocations;
    let on_fold = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::Set(Setting::FoldsAllocations(!is_folded))))
    };
    let (has_times, is_running) = (device.has_times, model.live().is_some_and(Live::is_open));
    let rows = list.visible.clone().map(|number| {
        let row = table.and_then(|table| row_at(table, number));
        let is_selected = row.is_some_and(|row| subject(row) == view.selection);
        row_html(&model, row, &RowProps { number, is_at: *at == Some(number), is_selected, has_times, is_running })
    });
    html! {
        <section class="allocations" aria-label="Allocations" data-testid="allocations">
            <Toolbar label="Allocations">
                { listing_control(&model) }
                <div class="toggles">
                    { toggle(is_folded, &on_fold, "allocations-fold", Some("One row for all allocations of one size from one call site (B)"), html! { "Group same line and size" }) }
                </div>
                <span class="toolbar-note" data-testid="allocations-total">
                    if let Some(table) = table { { total_text(table, view.settings.listing) }{ " " } }
                    { moment_text(view, device) }
                </span>
            </Toolbar>
            if let Some(sentence) = refused {
                <p class="canvas-empty">{ sentence }</p>
            } else if table.is_some_and(|table| table.table_rows == 0) {
                { empty("No allocation is live at this moment.", "Move the cursor, or choose At peak.", false) }
            } else {
                <div class="grid" role="grid" tabindex="0" aria-label="Allocations" {onkeydown}
                    aria-rowcount={table.map_or_else(String::new, |table| (u64::from(table.table_rows) + 1).to_string())}
                    aria-activedescendant={at.map(row_id)}>
                    { head(&model) }
                    { list.wrap("rowgroup", rows.collect()) }
                </div>
            }
        </section>
    }
}

/// Returns a row, if the answer has it.
fn row_at(table: &AllocationRows, number: u32) -> Option<&AllocationRow> {
    table.rows.get(number.checked_sub(table.query.first)? as usize)
}

fn row_id(number: u32) -> String {
    format!("allocation-row-{number}")
}

/// Returns what a click on a row selects: the allocation, or the call site of several.
fn subject(row: &AllocationRow) -> Selection {
    if row.count == 1 { Selection::Allocation(row.allocation) } else { Selection::Line(row.stack) }
}

/// Describes the whole table: `1,204 allocations, 3.84 GiB`. Of a growth only what was allocated is listed.
fn total_text(table: &AllocationRows, listing: Listing) -> String {
    let still = if listing == Listing::Growth { " allocated and still live" } else { "" };
    format!("{}, {}{still},", counted(table.total.count.into(), "allocation"), Bytes(table.total.bytes))
}

/// Writes the sizes of a row: `80 × 49.1 MiB`, or one size.
fn size_text(row: &AllocationRow) -> String {
    let size = Bytes(row.size);
    if row.count == 1 { size.to_string() } else { format!("{} × {size}", Count(row.count.into())) }
}

/// Returns the title of a column.
fn title(order: AllocationOrder) -> &'static str {
    match order {
        AllocationOrder::Bytes => "Bytes",
        AllocationOrder::Count => "Count × size",
        AllocationOrder::Made => "Allocated",
        AllocationOrder::Lifetime => "Lifetime",
        AllocationOrder::Site => "Call site",
        AllocationOrder::FreedBy => "Freed by",
    }
}

/// Returns the class of a column.
fn class(order: AllocationOrder) -> Option<&'static str> {
    match order {
        AllocationOrder::Bytes | AllocationOrder::Count | AllocationOrder::Lifetime => Some("cell-number"),
        AllocationOrder::Made => Some("cell-number allocation-made"),
        AllocationOrder::Site => None,
        AllocationOrder::FreedBy => Some("allocation-freed"),
    }
}

/// Renders the head of the table. A press on the column that the table is ordered by turns the order around.
fn head(model: &ModelHandle) -> Html {
    let settings = &model.view.settings;
    let (by, is_reversed) = (settings.allocation_order, settings.allocations_reversed);
    let cells = AllocationOrder::ALL.into_iter().map(|order| {
        let is_by = order == by;
        let onclick = {
            let model = model.clone();
            Callback::from(move |_| {
                model.dispatch(Action::Set(Setting::AllocationsReversed(is_by && !is_reversed)));
                model.dispatch(Action::Set(Setting::AllocationOrder(order)));
            })
        };
        // Amounts begin with the largest.
        let is_falling = is_reversed != matches!(order, AllocationOrder::Bytes | AllocationOrder::Count | AllocationOrder::Lifetime);
        let sort = match (is_by, is_falling) {
            (true, true) => "descending",
            (true, false) => "ascending",
            (false, _) => "none",
        };
        let name = allocation_order_name(order);
        html! {
            <span key={name} role="columnheader" aria-sort={sort} class={class(order)}>
                <button type="button" class="event-sort" tabindex="-1" {onclick} title={format!("Sort by {}", title(order).to_ascii_lowercase())}
                    data-testid={format!("sort-{name}")}>
                    { title(order) }
                    if is_by { <span aria-hidden="true">{ if is_falling { " ↓" } else { " ↑" } }</span> }
                </button>
            </span>
        }
    });
    html! { <div class="event-head allocation-cells" role="row" aria-rowindex="1">{ for cells }</div> }
}

/// What a row needs to render, beside its contents.
struct RowProps {
    /// The row's number, from 0.
    number: u32,
    /// Whether keys move from it.
    is_at: bool,
    /// Whether it is selected.
    is_selected: bool,
    /// Whether the trace has times.
    has_times: bool,
    /// Whether the trace is that of a running job.
    is_running: bool,
}

/// Renders a row of the table; a placeholder until its contents arrive.
fn row_html(model: &ModelHandle, row: Option<&AllocationRow>, props: &RowProps) -> Html {
    let (id, index) = (row_id(props.number), (u64::from(props.number) + 2).to_string());
    let Some(row) = row else {
        return html! {
            <div key={props.number} {id} class="event-row allocation-cells" role="row" aria-rowindex={index} aria-busy="true">
                <span class="placeholder" /><span class="placeholder" />
            </div>
        };
    };
    let own = subject(row);
    let (is_selected, has_times) = (props.is_selected, props.has_times);
    let menu = match own {
        Selection::Allocation(id) => format!("a{id}"),
        _ => format!("l{}", row.stack),
    };
    let class = classes!(
        "event-row",
        "allocation-cells",
        is_selected.then_some("is-selected"),
        props.is_at.then_some("is-cursor")
    );
    let onclick = sends(model, Action::Select(if is_selected { Selection::None } else { own }));
    html! {
        <div key={props.number} {id} {class} role="row" aria-rowindex={index} aria-selected={is_selected.to_string()} {onclick} data-menu={menu} data-testid="allocation-row">
            <span role="gridcell" class="cell-number">{ bytes_text(row.size.saturating_mul(row.count.into())) }</span>
            <span role="gridcell" class="cell-number dim allocation-size" data-testid="allocation-size">{ size_text(row) }</span>
            <span role="gridcell" class="cell-number dim allocation-made">{ made_text(row, has_times) }</span>
            <span role="gridcell" class="cell-number dim allocation-lifetime">{ lifetime_text(row, has_times) }</span>
            <span role="gridcell" class="cell-site" title={row.label.clone()}>{ paint_chip(&palette(model), row.paint) }{ site_text(&row.label) }</span>
            <span role="gridcell" class="cell-site allocation-freed" data-testid="allocation-freed">{ freed_text(row, props.is_running) }</span>
        </div>
    }
}

/// Describes when the first allocation of a row was made.
fn made_text(row: &AllocationRow, has_times: bool) -> String {
    match row.begin {
        0 => "before the trace".to_owned(),
        _ if has_times => moment(row.begin_us),
        begin => format!("event {}", Count(begin.into())),
    }
}

/// Describes the lifetime of a row: the longest of several. One that has no end, or no beginning, in the trace is longer.
fn lifetime_text(row: &AllocationRow, has_times: bool) -> String {
    let length = if has_times { duration(row.lifetime_us) } else { counted(row.lifetime.into(), "event") };
    match (row.begin == 0 || row.live > 0, row.count) {
        (true, _) => format!("≥ {length}"),
        (false, 1) => length,
        (false, _) => format!("≤ {length}"),
    }
}

/// Renders what freed the allocations of a row.
fn freed_text(row: &AllocationRow, is_running: bool) -> Html {
    let dim = |text: String| html! { <span class="dim">{ text }</span> };
    let live = match row.live {
        live if live < row.count && live > 0 => dim(format!(", {} still live", Count(live.into()))),
        _ => Html::default(),
    };
    match &row.freed_by {
        FreedBy::Nothing => dim(still_live(is_running).to_owned()),
        FreedBy::Unknown => html! { <>{ dim("not recorded".to_owned()) }{ live }</> },
        FreedBy::Several => html! { <>{ "several lines" }{ live }</> },
        FreedBy::Line(line) => html! { <>{ site_text(line) }{ live }</> },
    }
}

#[cfg(test)]
mod tests {
    use query::Paint;

    use super::*;

    fn row() -> AllocationRow {
        AllocationRow {
            allocation: 3,
            count: 80,
            size: 51_484_000,
            begin: 12,
            begin_us: 482_031.0,
            lifetime_us: 2_500.0,
            lifetime: 40,
            live: 0,
            stack: 7,
            label: "forward  m.py:3".to_owned(),
            paint: Paint::slot(1),
            freed_by: FreedBy::Unknown,
        }
    }

    #[test]
    fn a_row_in_words() {
        let (one, live) = (AllocationRow { count: 1, ..row() }, AllocationRow { live: 2, ..row() });
        let first = AllocationRow { begin: 0, ..row() };
        assert_eq!((size_text(&row()), size_text(&one)), ("80 × 49.1 MiB".to_owned(), "49.1 MiB".to_owned()));
        assert_eq!(subject(&row()), Selection::Line(7));
        assert_eq!(subject(&one), Selection::Allocation(3));
        let lifetimes = [&row(), &one, &live, &first].map(|row| lifetime_text(row, true));
        assert_eq!(lifetimes, ["≤ 2.50 ms", "2.50 ms", "≥ 2.50 ms", "≥ 2.50 ms"]);
        assert_eq!(lifetime_text(&one, false), "40 events");
        assert_eq!(
            (made_text(&first, true), made_text(&one, false)),
            ("before the trace".to_owned(), "event 12".to_owned())
        );
    }
}
