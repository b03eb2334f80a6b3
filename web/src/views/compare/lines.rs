//! The table of lines: what each holds in A and in B, and how it was found again.

use query::link::compared_order_name;
use query::run_comparison::{ChangedLine, LineMatch, RunComparison};
use query::{ComparedOrder, Paint};
use trace::order::SortFew;
use trace::totals::Amount;
use trace::units::{Count, counted};
use yew::prelude::*;

use crate::hooks::{ModelHandle, palette};
use crate::model::{Action, Selection, Setting};
use crate::widgets::bytes_text::{bytes_text, change_text};
use crate::widgets::chips::{paint_chip, toggle};
use crate::widgets::scroller::scroller;
use crate::widgets::site_text::site_text;

/// The most rows of the table.
const MOST: usize = 500;

/// Renders the table.
pub fn table(model: &ModelHandle, found: &RunComparison) -> Html {
    let settings = &model.view.settings;
    let term = model.view.highlight.as_deref().unwrap_or_default().to_ascii_lowercase();
    let rows = rows(found, settings.lists_unchanged, settings.compared_order, &term);
    let unchanged = found.lines.iter().filter(|line| line.growth() == 0).count() as u64;
    let on_all = {
        let (model, is_on) = (model.clone(), settings.lists_unchanged);
        Callback::from(move |()| model.dispatch(Action::Set(Setting::ListsUnchanged(!is_on))))
    };
    let more = rows.len().saturating_sub(MOST) as u64;
    html! {
        <section class="compare-lines" aria-label="Lines">
            <div class="compare-lines-head">
                <h2>{ "Lines" }</h2>
                if unchanged > 0 {
                    { toggle(settings.lists_unchanged, &on_all, "compare-unchanged", Some("List the lines that hold the same in both, too"), html! { counted(unchanged, "unchanged line") }) }
                }
                if !term.is_empty() {
                    <span class="dim">{ format!("{} that the search finds", counted(rows.len() as u64, "line")) }</span>
                }
            </div>
            if rows.is_empty() {
                <p class="dim" data-testid="compare-none">{ if term.is_empty() { "Every line holds the same in both." } else { "The search finds none of the lines that changed." } }</p>
            } else {
                { scroller("Table of lines", html! {
                    <table class="compare-table is-lines" data-testid="compare-lines">
                        { head(model, settings.compared_order) }
                        <tbody>{ for rows.iter().take(MOST).enumerate().map(|(i, line)| row(model, i, (line, found.knows_lines()))) }</tbody>
                    </table>
                }) }
            }
            if more > 0 {
                <p class="dim">{ format!("{} not shown. Search for what you are looking for.", counted(more, "more line")) }</p>
            }
        </section>
    }
}

/// Returns the lines of the table that have a lowercase term, in their order. Only the case of ASCII letters is ignored: the tables for
/// all others take four kilobytes.
fn rows<'a>(found: &'a RunComparison, has_unchanged: bool, order: ComparedOrder, term: &str) -> Vec<&'a ChangedLine> {
    let is_meant = |line: &&ChangedLine| {
        let is_found = || line.labels.iter().chain(&line.places).any(|text| text.to_ascii_lowercase().contains(term));
        (has_unchanged || line.growth() != 0) && (term.is_empty() || is_found())
    };
    let mut rows: Vec<&ChangedLine> = found.lines.iter().filter(is_meant).collect();
    let held =
        |run: usize| move |line: &&ChangedLine| std::cmp::Reverse(line.held.get(run).map_or(0, |held| held.bytes));
    match order {
        // As they come.
        ComparedOrder::Growth => {}
        ComparedOrder::Before => rows.sort_few_by_key(held(0)),
        ComparedOrder::After => rows.sort_few_by_key(held(1)),
        ComparedOrder::Line => rows.sort_few_by(|a, b| a.label().cmp(b.label())),
        ComparedOrder::Found => rows.sort_few_by_key(|line| match line.found {
            LineMatch::New => 0,
            LineMatch::Gone => 1,
            LineMatch::Guessed => 2,
            LineMatch::Moved => 3,
            LineMatch::Exact => 4,
        }),
    }
    rows
}

/// Renders the head of the table. A press on a column orders by it.
fn head(model: &ModelHandle, by: ComparedOrder) -> Html {
    let cell = |order: ComparedOrder, name: Html, title: &'static str| {
        let model = model.clone();
        let onclick = Callback::from(move |_: MouseEvent| model.dispatch(Action::Set(Setting::ComparedOrder(order))));
        let (is_by, is_text) = (order == by, order == ComparedOrder::Line);
        html! {
            <th scope="col" aria-sort={match (is_by, is_text) {
                (false, _) => "none",
                (true, true) => "ascending",
                (true, false) => "descending",
            }}>
                <button type="button" class="event-sort" {onclick} {title} data-testid={format!("compare-sort-{}", compared_order_name(order))}>{ name }if is_by { <span aria-hidden="true">{ if is_text { " ↑" } else { " ↓" } }</span> }</button>
            </th>
        }
    };
    let key = |class: &'static str, name: &'static str| html! { <span class={classes!("compare-key", class)}>{ name }</span> };
    html! {
        <thead><tr>
            { cell(ComparedOrder::Growth, html! { "Change" }, "Sort by how much a line changed") }
            <th scope="col" title="What makes most of the change">{ "Why" }</th>
            { cell(ComparedOrder::Before, key("is-a", "A"), "Sort by what a line holds in A") }
            <th scope="col">{ "tensors" }</th>
            { cell(ComparedOrder::After, key("is-b", "B"), "Sort by what a line holds in B") }
            <th scope="col">{ "tensors" }</th>
            { cell(ComparedOrder::Found, html! { "Line is" }, "Sort by how a line was found again: new and gone first") }
            { cell(ComparedOrder::Line, html! { "Line" }, "Sort by the line's text") }
        </tr></thead>
    }
}

fn row(model: &ModelHandle, number: usize, (line, is_known): (&ChangedLine, bool)) -> Html {
    let [of_a, of_b] = line.stacks;
    let is_selected = of_b.is_some_and(|stack| model.view.selection == Selection::Line(stack));
    let onclick = of_b.map(|_| {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| select(&model, [of_a, of_b], is_selected))
    });
    let [before, after] = line.held;
    let class = classes!(of_b.is_some().then_some("is-line"), is_selected.then_some("is-selected"));
    let [label_a, label_b] = &line.labels;
    let is_renamed = !label_a.is_empty() && !label_b.is_empty() && label_a != label_b;
    html! {
        <tr key={number} {class} {onclick} data-testid="compare-line-row" data-match={line.found.name()}>
            <td>{ change_text(line.growth()) }</td>
            <td class="dim">{ if is_known { cause(line) } else { "" } }</td>
            { for [before, after].into_iter().map(held_cells) }
            <td>{ match_text(line, is_known) }</td>
            <th scope="row" title={line.place().to_owned()}>
                <span class="compare-line">
                    { paint_chip(&palette(model), paint(line)) }
                    if of_b.is_some() {
                        <button type="button" class="compare-site">{ site_text(line.label()) }</button>
                    } else if of_a.is_some() {
                        <span title="It is in A alone: swap A and B to look into it">{ site_text(line.label()) }</span>
                    } else {
                        { line.label().to_owned() }
                    }
                </span>
                if is_renamed { <span class="compare-was dim">{ "was " }{ site_text(label_a) }</span> }
            </th>
        </tr>
    }
}

/// Selects a line in both runs, or nothing.
fn select(model: &ModelHandle, [of_a, of_b]: [Option<u32>; 2], is_selected: bool) {
    let line = |stack: Option<u32>| stack.filter(|_| !is_selected).map_or(Selection::None, Selection::Line);
    if let Some(base) = model.base() {
        model.dispatch(Action::Of(base, Box::new(Action::Select(line(of_a)))));
    }
    model.dispatch(Action::Select(line(of_b)));
}

/// Returns a line's colour, which is that of its text in B.
fn paint(line: &ChangedLine) -> Paint {
    if line.is_code() { Paint::line(line.label()) } else { Paint::OTHER }
}

/// Renders what a line holds: bytes, and the number of tensors.
fn held_cells(held: Amount) -> Html {
    if held.count == 0 {
        return html! { <><td class="dim">{ "–" }</td><td /></> };
    }
    html! { <><td>{ bytes_text(held.bytes) }</td><td class="dim">{ Count(held.count.into()).to_string() }</td></> }
}

/// Says what makes the change: more tensors, or larger ones.
fn cause(line: &ChangedLine) -> &'static str {
    let [before, after] = line.held;
    let is_more = match line.growth().signum() {
        0 => return "",
        sign => sign > 0,
    };
    match (before.count, after.count, line.is_by_number()) {
        (0, ..) => "none in A",
        (_, 0, _) => "none in B",
        (.., true) if is_more => "more tensors",
        (.., true) => "fewer tensors",
        (.., false) if is_more => "larger tensors",
        (.., false) => "smaller tensors",
    }
}

fn match_text(line: &ChangedLine, is_known: bool) -> Html {
    if !line.is_code() {
        return Html::default();
    }
    let (name, title) = match line.found {
        LineMatch::Exact => ("the same", "The same function, file and line number in both"),
        LineMatch::Moved => ("moved", "The same function, at another line or in another file"),
        LineMatch::Guessed => ("guessed", "Another function or file; the only line that allocates the same sizes"),
        LineMatch::New | LineMatch::Gone if !is_known => ("unknown", "One of the runs has no stacks, and so no lines"),
        LineMatch::New => ("new", "In B alone"),
        LineMatch::Gone => ("gone", "In A alone"),
    };
    html! { <span class={classes!("compare-match", format!("is-{}", line.found.name()))} {title}>{ name }</span> }
}

#[cfg(test)]
mod tests {
    use query::Category;

    use super::*;

    fn line(label: &str, found: LineMatch, before: (u64, u32), after: (u64, u32)) -> ChangedLine {
        let held = [before, after].map(|(bytes, count)| Amount { bytes, count });
        let labels = [label.to_owned(), label.to_owned()];
        ChangedLine {
            found,
            labels,
            places: Default::default(),
            stacks: [Some(1), Some(2)],
            held,
            band: None,
            category: Category::Unknown,
        }
    }

    fn comparison() -> RunComparison {
        RunComparison {
            lines: vec![
                line("step  b.py:9", LineMatch::Exact, (100, 1), (400, 1)),
                line("forward  a.py:3", LineMatch::New, (0, 0), (200, 2)),
                line("log  a.py:7", LineMatch::Moved, (900, 9), (900, 9)),
            ],
            ..RunComparison::default()
        }
    }

    #[test]
    fn lines_are_ordered_and_found() {
        let found = comparison();
        for (has_unchanged, order, term, want) in [
            (false, ComparedOrder::Growth, "", "step forward"),
            (true, ComparedOrder::Growth, "", "step forward log"),
            (true, ComparedOrder::Before, "", "log step forward"),
            (true, ComparedOrder::After, "", "log step forward"),
            (true, ComparedOrder::Line, "", "forward log step"),
            (true, ComparedOrder::Found, "", "forward log step"),
            (true, ComparedOrder::Growth, "a.py", "forward log"),
            (false, ComparedOrder::Growth, "a.py", "forward"),
            (true, ComparedOrder::Growth, "nothing", ""),
        ] {
            let rows = rows(&found, has_unchanged, order, term);
            let names: Vec<_> = rows.iter().filter_map(|line| line.label().split(' ').next()).collect();
            assert_eq!(names.join(" "), want, "{order:?} {term}");
        }
    }

    #[test]
    fn a_change_comes_from_more_tensors_or_from_larger_ones() {
        let of = |before, after| cause(&line("f  a.py:1", LineMatch::Exact, before, after));
        let found = [of((100, 1), (200, 2)), of((200, 1), (100, 1)), of((0, 0), (5, 1)), of((5, 1), (5, 1))];
        assert_eq!(found, ["more tensors", "smaller tensors", "none in A", ""]);
    }
}
