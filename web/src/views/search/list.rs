//! The list of matches below the search box.

use query::{Found, SearchResult};
use trace::units::{Count, counted};
use yew::prelude::*;

use super::rows::Row;
use crate::model::Selection;
use crate::render::palette::Palette;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::format::moment;
use crate::widgets::site_text::site_text;

/// The id of the list, for the box that controls it.
pub const LIST_ID: &str = "search-list";

/// The id of a row.
pub fn row_id(row: Row) -> String {
    match row {
        Row::Allocation(i) => format!("found-a{i}"),
        Row::Line(i) => format!("found-l{i}"),
        Row::Segment(i) => format!("found-s{i}"),
        Row::Mark(i) => format!("found-m{i}"),
    }
}

/// What the list is rendered from.
pub struct Shown<'a> {
    /// The sums.
    pub result: Option<&'a SearchResult>,
    /// The rows, once they are known.
    pub found: Option<&'a Found>,
    /// Why the search was refused, if it was.
    pub refused: Option<&'a str>,
    /// The row that was chosen with the arrow keys.
    pub chosen: Option<Row>,
    /// The selection of the page.
    pub selection: Selection,
    /// The page's colours.
    pub palette: &'a Palette,
    /// Whether the trace has times.
    pub has_times: bool,
    /// Called with the row that is pressed.
    pub on_choose: &'a Callback<Row>,
}

/// Renders the list.
pub fn list(shown: &Shown<'_>) -> Html {
    let none = shown.result.and_then(|result| result.none.clone());
    let understood = shown.result.map(|result| result.understood.clone()).filter(|text| !text.is_empty());
    // The box keeps the focus.
    let onmousedown = Callback::from(|event: MouseEvent| event.prevent_default());
    html! {
        <div class="popover search-list" {onmousedown} data-testid="search-list">
            if let Some(none) = none.as_deref().or(shown.refused) {
                <p class="search-none" role="status" data-testid="search-none">{ none.to_owned() }</p>
            } else if let Some(understood) = understood {
                <p class="search-understood dim" data-testid="search-understood">{ format!("Understood as {understood}") }</p>
            }
            <div id={LIST_ID} role="listbox" aria-label="Matches">
                if let Some(found) = shown.found {
                    { groups(shown, found) }
                }
            </div>
            <p class="search-keys dim">
                <kbd>{ "Enter" }</kbd>{ " next " }<kbd>{ "Shift" }</kbd><kbd>{ "Enter" }</kbd>{ " previous " }
                <kbd>{ "↓" }</kbd>{ " choose " }<kbd>{ "Ctrl" }</kbd><kbd>{ "Enter" }</kbd>{ " filter " }<kbd>{ "Esc" }</kbd>{ " close" }
            </p>
        </div>
    }
}

fn groups(shown: &Shown<'_>, found: &Found) -> Html {
    let (count, bytes) = found.allocations;
    let selected = |is: bool| is.then_some("is-selected");
    let allocations = found.hits.iter().enumerate().map(|(i, hit)| {
        let is_selected = shown.selection == Selection::Allocation(hit.allocation);
        let when = if shown.has_times { moment(hit.time_us) } else { Count(hit.position.into()).to_string() };
        row(
            shown,
            Row::Allocation(i),
            selected(is_selected),
            html! {
                <>
                    <span class="found-when dim">{ when }</span>
                    { paint_chip(shown.palette, hit.paint) }
                    <span class="found-name">{ site_text(&hit.site) }</span>
                    { bytes_text(hit.bytes) }
                </>
            },
        )
    });
    let lines = found.by_line.iter().enumerate().map(|(i, line)| {
        let is_selected = shown.selection == Selection::Line(line.stack);
        row(
            shown,
            Row::Line(i),
            selected(is_selected),
            html! {
                <>
                    { paint_chip(shown.palette, line.paint) }
                    <span class="found-name">{ site_text(&line.label) }</span>
                    <span class="dim">{ counted(line.count.into(), "allocation") }</span>
                    { bytes_text(line.bytes) }
                </>
            },
        )
    });
    let segments = found.by_size.iter().enumerate().map(|(i, segment)| {
        let is_selected = shown.selection == Selection::Segment(segment.address);
        row(
            shown,
            Row::Segment(i),
            selected(is_selected),
            html! {
                <>
                    <span class="found-name mono">{ segment.address.to_string() }</span>
                    <span class="dim">{ format!("stream {}", segment.stream) }</span>
                    { bytes_text(segment.size) }
                </>
            },
        )
    });
    let marks = found.first_marks.iter().enumerate().map(|(i, mark)| {
        row(shown, Row::Mark(i), None, html! {
            <>
                <span class="found-when dim">
                    { if shown.has_times { moment(mark.time_us) } else { Count(mark.from.into()).to_string() } }
                </span>
                <span class="found-name">{ mark.name.clone() }</span>
                <span class="dim">{ if mark.to > mark.from { counted((mark.to - mark.from).into(), "event") } else { "moment".to_owned() } }</span>
            </>
        })
    });
    let sum = |bytes: u64| html! { <>{ " · " }{ bytes_text(bytes) }</> };
    let behind = u64::from(count).saturating_sub(u64::from(found.first) + found.hits.len() as u64);
    let beside = match (found.first, behind) {
        (0, 0) => String::new(),
        (0, behind) => format!("and {} later", Count(behind)),
        (before, 0) => format!("and {} earlier", Count(before.into())),
        (before, behind) => format!("and {} earlier, {} later", Count(before.into()), Count(behind)),
    };
    let more = |count: u32, listed: usize| match u64::from(count).saturating_sub(listed as u64) {
        0 => String::new(),
        more => format!("{} more", Count(more)),
    };
    html! {
        <>
            { group("Allocations", "found-allocations", count, sum(bytes), beside, allocations.collect()) }
            { group("Lines", "found-lines", found.lines, Html::default(), more(found.lines, found.by_line.len()), lines.collect()) }
            { group("Segments at the cursor", "found-segments", found.segments.0, sum(found.segments.1), more(found.segments.0, found.by_size.len()), segments.collect()) }
            { group("Annotations and steps", "found-marks", found.marks, Html::default(), more(found.marks, found.first_marks.len()), marks.collect()) }
        </>
    }
}

fn group(title: &'static str, testid: &'static str, count: u32, sum: Html, beside: String, rows: Html) -> Html {
    if count == 0 {
        return Html::default();
    }
    html! {
        <div class="found-group" role="group" aria-label={title} key={testid} data-testid={testid}>
            <div class="found-head" role="presentation">
                <b>{ title }</b><span data-testid="found-count">{ Count(count.into()).to_string() }{ sum }</span>
                <span class="found-more dim">{ beside }</span>
            </div>
            <div class="found-rows" role="presentation">{ rows }</div>
        </div>
    }
}

fn row(shown: &Shown<'_>, row: Row, class: Option<&'static str>, cells: Html) -> Html {
    let onclick = shown.on_choose.reform(move |_| row);
    let is_chosen = shown.chosen == Some(row);
    html! {
        <div id={row_id(row)} key={row_id(row)} class={classes!("found-row", class, is_chosen.then_some("is-chosen"))} role="option"
            aria-selected={(is_chosen || class.is_some()).to_string()} {onclick} data-testid="found-row">
            { cells }
        </div>
    }
}
