//! A readable stack: the program's frames in bold, runs of library frames folded, and buttons that copy it.

mod text;

use query::folding::{Part, fold, part_of, run_text, short_name};
use query::{FrameText, MissingText};
pub use text::{all, last_part, place, plain_text, split_path};
use yew::prelude::*;

use super::copy::CopyButton;
use crate::browser::use_effect_with;

/// What stacks need to know of the page, and do to it. A context, since they are in every pane.
#[derive(Clone, PartialEq)]
pub struct StackSettings {
    /// Whether runs of library frames are folded at first.
    pub folds: bool,
    /// Called with a part of a path, and whether it is the user's own code from now on rather than a library.
    pub on_rule: Callback<(String, bool)>,
    /// Called to show all such rules.
    pub on_rules: Callback<()>,
}

/// Renders a stack with a title in sentence case, such as `Allocated by`. `frames` are innermost first; `missing` says
/// why there are none.
pub fn stack_list(title: &'static str, frames: &[FrameText], missing: Option<&MissingText>) -> Html {
    html! { <StackList {title} frames={frames.to_vec()} missing={missing.cloned()} /> }
}

#[derive(PartialEq, Properties)]
struct StackListProps {
    title: &'static str,
    frames: Vec<FrameText>,
    missing: Option<MissingText>,
}

#[component]
fn StackList(props: &StackListProps) -> Html {
    let settings = use_context::<StackSettings>();
    // Unfolded runs, by the index of their first frame.
    let unfolded = use_state_eq(Vec::<usize>::new);
    // The frame whose actions are shown.
    let chosen = use_state_eq(|| None::<usize>);
    {
        let (unfolded, chosen) = (unfolded.setter(), chosen.setter());
        use_effect_with(props.frames.clone(), move |_| {
            unfolded.set(Vec::new());
            chosen.set(None);
        });
    }
    let folds = settings.as_ref().is_none_or(|settings| settings.folds);
    let parts = if folds { fold(&props.frames) } else { all(&props.frames) };
    // What is copied is what is shown.
    let shown: Vec<Part> = parts
        .iter()
        .flat_map(|part| match part {
            Part::Folded(run) if unfolded.contains(&run.start) => run.clone().map(Part::Frame).collect(),
            part => vec![part.clone()],
        })
        .collect();
    let is_folded = shown.iter().any(|part| matches!(part, Part::Folded(_)));
    let frame_row = |i: usize, frame: &FrameText| {
        let is_chosen = *chosen == Some(i);
        let choose = {
            let chosen = chosen.clone();
            Callback::from(move |_| chosen.set((!is_chosen).then_some(i)))
        };
        html! {
            <>
                { row(i, frame, is_chosen, choose) }
                if let Some(settings) = settings.as_ref().filter(|_| is_chosen) {
                    { acts(i, frame, settings) }
                }
            </>
        }
    };
    let rows = parts.into_iter().map(|part| match part {
        Part::Frame(i) => props.frames.get(i).map(|frame| frame_row(i, frame)).unwrap_or_default(),
        Part::Folded(run) => {
            let first = run.start;
            let is_open = unfolded.contains(&first);
            let toggle = {
                let unfolded = unfolded.clone();
                Callback::from(move |_| {
                    let mut runs = (*unfolded).clone();
                    if is_open { runs.retain(|&run| run != first) } else { runs.push(first) }
                    unfolded.set(runs);
                })
            };
            let inner = props.frames.get(run.clone()).unwrap_or_default();
            html! {
                <>
                    <li class="frame-fold" key={format!("fold{first}")}>
                        <button type="button" class="fold-toggle" aria-expanded={is_open.to_string()} onclick={toggle} data-testid="stack-fold">
                            <span class="fold-mark" aria-hidden="true">{ if is_open { "▾" } else { "▸" } }</span>
                            { run_text(inner) }
                        </button>
                    </li>
                    if is_open {
                        { for inner.iter().enumerate().map(|(i, frame)| frame_row(first + i, frame)) }
                    }
                </>
            }
        }
    });
    html! {
        <section class="stack">
            <header class="section-head">
                <h3>{ props.title }</h3>
                if !props.frames.is_empty() {
                    <CopyButton text={plain_text(&props.frames, &shown)} label="Copy stack" />
                    if is_folded {
                        <CopyButton text={plain_text(&props.frames, &all(&props.frames))} label="Copy all frames" />
                    }
                }
            </header>
            if props.frames.is_empty() {
                { why(props.missing.as_ref()) }
            } else {
                <ol class="frames">{ for rows }</ol>
            }
        </section>
    }
}

/// Renders why there is no stack, and how to get one.
fn why(missing: Option<&MissingText>) -> Html {
    let Some(missing) = missing else { return html! { <p class="quiet">{ "No stack was recorded." }</p> } };
    html! {
        <p class="quiet" data-testid="missing-stack">{ &missing.reason }{ " " }<span class="remedy">{ &missing.remedy }</span></p>
    }
}

fn row(i: usize, frame: &FrameText, is_chosen: bool, choose: Callback<MouseEvent>) -> Html {
    let (file, folder) = split_path(&frame.filename);
    let title = format!("{}\n{}", frame.name, place(&frame.filename, frame.line));
    let is_library = !frame.library.is_empty();
    let class =
        classes!("frame", is_library.then_some("frame-internal"), frame.is_call_site.then_some("frame-telling"));
    html! {
        <li key={i} {class} {title}>
            <button type="button" class="frame-name" aria-expanded={is_chosen.to_string()} onclick={choose} data-testid="frame">
                { if frame.name.is_empty() { "(no name)" } else { short_name(&frame.name, &frame.filename) } }
            </button>
            <span class="frame-file">{ place(file, frame.line) }</span>
            <span class="frame-folder"><bdi>{ folder.to_owned() }</bdi></span>
        </li>
    }
}

/// Renders what can be done about the rules of a frame.
fn acts(i: usize, frame: &FrameText, settings: &StackSettings) -> Html {
    let is_library = !frame.library.is_empty();
    let rule = part_of(frame).map(|part| {
        let (label, testid) =
            if is_library { ("Treat as my code", "frame-mine") } else { ("Treat as a library", "frame-library") };
        let title = part.clone();
        let onclick = settings.on_rule.reform(move |_: MouseEvent| (part.clone(), is_library));
        html! { <button type="button" class="act" {title} {onclick} data-testid={testid}>{ label }</button> }
    });
    let onclick = settings.on_rules.reform(|_: MouseEvent| ());
    html! {
        <li class="frame-acts" key={format!("acts{i}")}>
            { for rule }
            <button type="button" class="act" {onclick} data-testid="frame-rules">{ "Folding rules…" }</button>
        </li>
    }
}
