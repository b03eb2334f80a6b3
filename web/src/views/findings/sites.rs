//! The lines of the program that hold the most memory at the cursor, at the peak, or that grew the most.

use query::{Answer, LinesQuery, Memory, Query};
use trace::units::Count;
use yew::prelude::*;

use crate::hooks::{use_answer, use_baseline, use_model_of, use_palette};
use crate::model::{Action, Listing, Parts, Selection};
use crate::views::controls::sends;
use crate::views::moment::{listing_control, memory_text, moment_text};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::format::counted;
use crate::widgets::share_bar::share_bar;

/// Maximum number of rows.
const TOP: u32 = 20;

/// The list of the largest call sites.
#[component]
pub fn LineList() -> Html {
    let model = use_model_of(Parts::PLACE);
    let palette = use_palette();
    use_baseline(&model);
    let view = &model.view;
    let query = model.device().map(|device| {
        let moments = view.moments(device.peak_position);
        Query::Lines(LinesQuery { moments, rows: TOP, filter: view.filter.clone() })
    });
    let answer = use_answer(query);
    let (Some(Answer::Lines(lines)), Some(device)) = (answer.as_deref(), model.device()) else {
        return html! {};
    };
    let listing = view.settings.listing;
    let is_growth = listing == Listing::Growth;
    // The moment of the answer, which is that of the view but for the time until the next one arrives.
    let at = lines.query.moments.at;
    let row = |key: String, memory: &Memory, site: Html| {
        html! {
            <tr {key}>
                <td class="cell-number">{ memory_text(listing, memory) }</td>
                <td class="cell-number tree-share">
                    if is_growth {
                        { bytes_text(memory.now.bytes) }
                    } else {
                        { share_bar(memory.now.bytes, lines.total.now.bytes) }
                    }
                </td>
                <td class="cell-number">{ Count(memory.now.count.into()).to_string() }</td>
                <td class="site-cell"><div>{ site }</div></td>
            </tr>
        }
    };
    html! {
        <section aria-label="Call sites" data-testid="lines">
            <header class="section-head">
                <h2>{ "Call sites" }</h2>
                { listing_control(&model) }
                <button type="button" class="link" onclick={sends(&model, Action::SetCursor(at))} title="Move the cursor there" data-testid="lines-go">
                    { moment_text(view, device) }
                </button>
                <span class="dim" data-testid="lines-total">{ memory_text(listing, &lines.total) }{ " requested" }</span>
            </header>
            <table class="rows lines">
                <thead>
                    <tr>
                        <th class="cell-number">{ if is_growth { "Growth" } else { "Bytes" } }</th>
                        <th class="cell-number">{ if is_growth { "At its end" } else { "Share" } }</th>
                        <th class="cell-number">{ "Count" }</th>
                        <th>{ "Call site" }</th>
                    </tr>
                </thead>
                <tbody>
                    { for lines.rows.iter().map(|line| row(line.stack.to_string(), &line.memory, html! {
                        <>
                            { paint_chip(&palette, line.paint) }
                            <button type="button" class="link" data-menu={format!("l{}", line.stack)} onclick={sends(&model, Action::Select(Selection::Line(line.stack)))}
                                aria-pressed={(view.selection == Selection::Line(line.stack)).to_string()}
                                title={line.label.clone()} data-testid="line">{ line.label.clone() }</button>
                        </>
                    })) }
                    if lines.others > 0 {
                        { row("others".to_owned(), &lines.rest, html! { <span class="dim">{ counted(lines.others.into(), "other call site") }</span> }) }
                    }
                </tbody>
            </table>
        </section>
    }
}
