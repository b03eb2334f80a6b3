//! The details of the selected allocation.

use std::fmt::Write;

use query::folding::{best_frame, fold, short_name};
use query::{AllocationDetail, AllocationQuery, Answer, Query};
use trace::units::Count;
use yew::prelude::*;

use super::facts::{act, fact, fact_with, facts, pool_text, stream_fact, unknown};
use super::lifetime::{Lifetime, lifetime, window_of};
use crate::hooks::{ModelHandle, use_answer, use_model_of, use_palette};
use crate::model::{Action, Live, Parts, Selection, Tab};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::copy::CopyButton;
use crate::widgets::format::{bytes_in_full, share};
use crate::widgets::stack_list::{all, place, plain_text, split_path, stack_list};

/// Properties of [`AllocationPane`].
#[derive(PartialEq, Properties)]
pub struct AllocationPaneProps {
    /// The allocation's id.
    pub id: u32,
}

/// The details of an allocation.
#[component]
pub fn AllocationPane(props: &AllocationPaneProps) -> Html {
    let model = use_model_of(Parts::PLACE);
    let palette = use_palette();
    let answer = use_answer(Some(Query::Allocation(AllocationQuery { id: props.id })));
    let detail = match answer.as_deref() {
        Some(Answer::Allocation(detail)) => detail,
        Some(Answer::Refused(reason)) => return unknown(format!("Allocation {}", Count(props.id.into())), reason),
        _ => return html! {},
    };
    let has_times = model.device().is_some_and(|device| device.has_times);
    let loss = detail.size.saturating_sub(detail.requested);
    let is_running = model.live().is_some_and(Live::is_open);
    let life = lifetime(detail, has_times, is_running);
    let bytes = |bytes: u64| bytes_text(bytes);

    let mut rows = vec![
        fact("Requested", bytes(detail.requested)),
        fact_with(
            "Block",
            bytes(detail.size),
            if detail.size_is_exact {
                html! {}
            } else {
                derived()
            },
        ),
        fact_with("Rounding loss", bytes(loss), share(loss, detail.size).into()),
        fact_with(
            "Lifetime",
            life.span.clone().into(),
            life.length.clone().map(|length| html! { <span class="bytes">{ length }</span> }).unwrap_or_default(),
        ),
        fact("Events", events(detail, &model)),
        fact("Stream", stream_fact(detail.stream, model.device())),
        fact("Pool", pool_text(detail.pool, detail.is_small)),
        fact("Address", html! { <span class="mono">{ detail.address.to_string() }</span> }),
    ];
    rows.extend(detail.contexts.iter().map(|(name, text)| {
        html! { <div class="fact" key={name.clone()}><dt>{ name.clone() }</dt><dd>{ text.clone() }</dd></div> }
    }));
    let then = &detail.totals_then;
    let then_title = match detail.allocated_at {
        Some(_) => "Totals just after this allocation",
        None if model.device().is_some_and(|device| device.events == 0) => "Totals in the snapshot",
        None => "Totals at the start of the trace",
    };

    html! {
        <article class="detail" data-testid="detail-allocation" data-id={detail.id.to_string()}>
            <header class="detail-head">
                { paint_chip(&palette, detail.paint) }
                <h2 class="mono">{ detail.name.clone() }</h2>
                <CopyButton text={as_text(detail, &life, model.view.settings.folds)} label="Copy" />
            </header>
            <p class="detail-lead"><b>{ bytes_text(detail.requested) }</b>{ lead(detail) }</p>
            <div class="acts">{ actions(&model, detail) }</div>
            { facts(rows) }
            { stack_list("Allocated by", &detail.alloc_stack, detail.missing.as_ref()) }
            if !detail.free_stack.is_empty() {
                { stack_list("Freed by", &detail.free_stack, None) }
            }
            <h3>{ then_title }</h3>
            { facts(vec![
                fact("Requested", bytes(then.requested)),
                fact("Active", bytes(then.active)),
                fact("Reserved", bytes(then.reserved)),
                fact("Cached", bytes(then.cached)),
            ]) }
        </article>
    }
}

/// Marks a size that is not in the file.
fn derived() -> Html {
    html! { <span title="Not in the file; computed from the allocator's rounding rules.">{ "computed, not recorded" }</span> }
}

/// Renders the line of code that allocated it: ` by forward linear.py:116`.
fn lead(detail: &AllocationDetail) -> Html {
    let Some(frame) = best_frame(&detail.alloc_stack) else { return html! {} };
    let (file, _) = split_path(&frame.filename);
    html! { <>{ " by " }<b>{ short_name(&frame.name, &frame.filename).to_owned() }</b><span class="dim">{ " " }{ place(file, frame.line) }</span></> }
}

/// Renders the allocation's events as links.
fn events(detail: &AllocationDetail, model: &ModelHandle) -> Html {
    let steps = [
        ("alloc", detail.allocated_at),
        ("free_requested", detail.free_requested_at),
        ("free_completed", detail.free_completed_at),
    ];
    if steps.iter().all(|(_, position)| position.is_none()) {
        return "None in this trace".into();
    }
    html! {
        <span class="steps">
            { for steps.into_iter().filter_map(|(name, position)| Some((name, position?))).map(|(name, position)| {
                let model = model.clone();
                let onclick = Callback::from(move |_| model.dispatch(Action::SetCursor(position)));
                html! {
                    <button type="button" class="link" key={name} title={format!("Go to {name}")} {onclick}>
                        { Count(position.into()).to_string() }<span class="dim">{ " " }{ name }</span>
                    </button>
                }
            }) }
        </span>
    }
}

fn actions(model: &ModelHandle, detail: &AllocationDetail) -> Html {
    let send = |actions: Vec<Action>| {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| actions.iter().for_each(|action| model.dispatch(action.clone())))
    };
    let fit = vec![
        Action::SetTab(Tab::Timeline),
        Action::SetBytes(None),
        Action::SetWindow(window_of(detail, model.view.axis, model.extent())),
    ];
    let line = best_frame(&detail.alloc_stack)
        .map(|frame| search_term(&frame.name, &frame.filename, frame.line))
        .filter(|term| !term.is_empty());
    html! {
        <>
            { act("Go to alloc", "detail-go-alloc", "Move the cursor to the alloc event",
                detail.allocated_at.map(|p| send(vec![Action::SetCursor(p)]))) }
            { act("Go to free", "detail-go-free", "Move the cursor to the free event",
                detail.free_requested_at.or(detail.free_completed_at).map(|p| send(vec![Action::SetCursor(p)]))) }
            { act("Fit", "detail-fit", "Show the whole lifetime on the timeline", Some(send(fit))) }
            { act("Search this line", "detail-search", "Highlight all allocations from this line",
                line.map(|term| send(vec![Action::SetHighlight(Some(term))]))) }
            { act("Call site", "detail-site", "Select this line with all of its stacks",
                (!detail.alloc_stack.is_empty()).then(|| send(vec![Action::Select(Selection::Line(detail.stack))]))) }
        </>
    }
}

/// Returns a search term for a line: its file and number, or the function if those are unknown.
pub fn search_term(name: &str, filename: &str, line: u32) -> String {
    let term = if line == 0 || filename.is_empty() || filename == "??" {
        name.to_owned()
    } else {
        // The last two parts of the path distinguish files of the same name.
        let (file, folder) = split_path(filename);
        let (parent, _) = split_path(folder);
        let place = place(file, line);
        if parent.is_empty() { place } else { format!("{parent}/{place}") }
    };
    // One text, not several words.
    if term.contains(' ') { format!("\"{term}\"") } else { term }
}

/// Returns a search term for a frame by its `file:line`; `None` if it has neither a place nor a name.
pub fn frame_term(name: &str, location: &str) -> Option<String> {
    let (file, line) =
        location.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))).unwrap_or((location, 0));
    Some(search_term(name, file, line)).filter(|term| !term.is_empty())
}

/// Returns all details as plain text with exact numbers, for a report.
fn as_text(detail: &AllocationDetail, life: &Lifetime, folds: bool) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = write!(
        text,
        "{}\nrequested: {}\nblock: {}\nlifetime: {}\nstream: {}\npool: {}\n",
        detail.name,
        bytes_in_full(detail.requested),
        bytes_in_full(detail.size),
        life.span.replace('\u{a0}', " "),
        detail.stream,
        pool_text(detail.pool, detail.is_small),
    );
    for (title, frames) in [("allocated by", &detail.alloc_stack), ("freed by", &detail.free_stack)] {
        if !frames.is_empty() {
            let _ = write!(text, "{title}:\n{}", plain_text(frames, &if folds { fold(frames) } else { all(frames) }));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use query::FrameText;

    use super::super::lifetime::tests::detail;
    use super::*;

    #[test]
    fn a_search_term_is_the_place_of_a_line() {
        assert_eq!(search_term("forward", "/x/torch/nn/linear.py", 116), "nn/linear.py:116");
        assert_eq!(search_term("forward", "train.py", 3), "train.py:3");
        assert_eq!(search_term("at::empty", "??", 0), "at::empty");
        assert_eq!(search_term("at::empty", "", 7), "at::empty");
        assert_eq!(frame_term("forward", "/x/nn/linear.py:116").as_deref(), Some("nn/linear.py:116"));
        assert_eq!(frame_term("at::empty", "??").as_deref(), Some("at::empty"));
        assert_eq!(search_term("f(int, int)", "??", 0), "\"f(int, int)\"");
        assert_eq!(search_term("step", "/my code/train.py", 3), "\"my code/train.py:3\"");
        assert_eq!(frame_term("", ""), None);
    }

    #[test]
    fn copied_text_is_exact() {
        let mut d = detail();
        d.requested = 2_097_153;
        d.alloc_stack =
            vec![FrameText { name: "f".to_owned(), filename: "a.py".to_owned(), line: 2, ..FrameText::default() }];
        let text = as_text(&d, &lifetime(&d, true, false), true);
        assert!(text.starts_with("b7f0_1\nrequested: 2.00 MiB (2,097,153 bytes)\n"), "{text}");
        assert!(text.ends_with("allocated by:\na.py:2:f\n"), "{text}");
    }
}
