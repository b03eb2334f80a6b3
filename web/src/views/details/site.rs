//! The details of the selected call site.

use query::folding::best_frame;
use query::{Answer, Query, SiteQuery};
use trace::units::Count;
use yew::prelude::*;

use super::allocation::search_term;
use super::facts::{act, fact_with, facts, picks, unknown};
use crate::hooks::{use_answer, use_model_of, use_palette, use_site_name};
use crate::model::{Action, Parts, Selection};
use crate::views::controls::sends;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::format::counted;
use crate::widgets::stack_list::stack_list;

/// Properties of [`SitePane`].
#[derive(PartialEq, Properties)]
pub struct SitePaneProps {
    /// The number of its stack.
    pub stack: u32,
}

/// The details of a call site.
#[component]
pub fn SitePane(props: &SitePaneProps) -> Html {
    let model = use_model_of(Parts::PLACE);
    let palette = use_palette();
    let site_name = use_site_name(&model, props.stack);
    let answer = use_answer(Some(Query::Site(SiteQuery { stack: props.stack, position: model.view.cursor })));
    let site = match answer.as_deref() {
        Some(Answer::Site(site)) => site,
        Some(Answer::Refused(reason)) => {
            return unknown(site_name.unwrap_or_else(|| format!("Stack {}", Count(props.stack.into()))), reason);
        }
        _ => return html! {},
    };
    let bytes = |bytes: u64| bytes_text(bytes);
    let send = |action: Action| sends(&model, action);
    let (peak_bytes, peak_position) = site.peak;
    let line = best_frame(&site.frames).map(|frame| search_term(&frame.name, &frame.filename, frame.line));
    html! {
        <article class="detail" data-testid="detail-site" data-id={site.stack.to_string()}>
            <header class="detail-head">
                { paint_chip(&palette, site.paint) }
                <h2>{ site.label.clone() }</h2>
            </header>
            <div class="acts">
                { act("Go to peak", "detail-go-peak", "Move the cursor to where this stack held the most memory",
                    Some(send(Action::SetCursor(peak_position)))) }
                { act("Whole line", "detail-line", "Select this line with all of its stacks",
                    Some(send(Action::Select(Selection::Line(site.stack))))) }
                { act("Search this line", "detail-search", "Highlight all allocations from this line",
                    line.clone().map(|term| send(Action::SetHighlight(Some(term))))) }
                { act("Filter", "detail-filter", "Show only allocations from this line",
                    line.map(|term| send(Action::AddFilter(term)))) }
            </div>
            { facts(vec![
                fact_with("Line at cursor", bytes(site.line_live.0),
                    format!("{}, any stack", counted(site.line_live.1.into(), "allocation")).into()),
                fact_with("Stack at cursor", bytes(site.live.0), counted(site.live.1.into(), "allocation").into()),
                fact_with("Stack peak", bytes(peak_bytes),
                    format!("at event {}", Count(peak_position.into())).into()),
                fact_with("Stack total", bytes(site.bytes), counted(site.count.into(), "allocation").into()),
                fact_with("Never freed", bytes(site.live_at_end.0), counted(site.live_at_end.1.into(), "allocation").into()),
            ]) }
            { picks(&model, "Largest live allocations of this stack", &site.largest) }
            { stack_list("Stack", &site.frames, site.missing.as_ref()) }
        </article>
    }
}
