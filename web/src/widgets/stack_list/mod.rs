//! A readable stack: the program's frames in bold, runs of library frames folded, and a button that copies it.

mod text;

use shared::analysis::folding::{Part, fold, run_text, short_name};
use shared::query::FrameText;
pub use text::{all, last_part, place, plain_text, split_path};
use yew::prelude::*;

use super::copy::CopyButton;

/// Shown for a stack that was not recorded.
pub const NO_STACK: &str = "No stack was recorded. The thread may have run no Python code, as in the backward pass (record \
                            C++ stacks to see it), or stacks were turned off, or there was no room for more.";

/// Renders a stack with a title in sentence case, such as `Allocated by`. `frames` are innermost first; `empty` is
/// shown if there are none.
pub fn stack_list(title: &'static str, frames: &[FrameText], empty: &'static str) -> Html {
    html! { <StackList {title} frames={frames.to_vec()} {empty} /> }
}

#[derive(PartialEq, Properties)]
struct StackListProps {
    title: &'static str,
    frames: Vec<FrameText>,
    empty: &'static str,
}

#[component]
fn StackList(props: &StackListProps) -> Html {
    // Unfolded runs, by the index of their first frame.
    let unfolded = use_state_eq(Vec::<usize>::new);
    {
        let unfolded = unfolded.setter();
        use_effect_with(props.frames.clone(), move |_| unfolded.set(Vec::new()));
    }
    let parts = fold(&props.frames);
    // What is copied is what is shown.
    let shown: Vec<Part> = parts
        .iter()
        .flat_map(|part| match part {
            Part::Folded(run) if unfolded.contains(&run.start) => run.clone().map(Part::Frame).collect(),
            part => vec![part.clone()],
        })
        .collect();
    let is_folded = shown.iter().any(|part| matches!(part, Part::Folded(_)));
    let rows = parts.into_iter().map(|part| match part {
        Part::Frame(i) => props.frames.get(i).map(|frame| row(i, frame)).unwrap_or_default(),
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
                        { for inner.iter().enumerate().map(|(i, frame)| row(first + i, frame)) }
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
                <p class="quiet">{ props.empty }</p>
            } else {
                <ol class="frames">{ for rows }</ol>
            }
        </section>
    }
}

fn row(i: usize, frame: &FrameText) -> Html {
    let (file, folder) = split_path(&frame.filename);
    let title = format!("{}\n{}", frame.name, place(&frame.filename, frame.line));
    let is_library = !frame.library.is_empty();
    let class =
        classes!("frame", is_library.then_some("frame-internal"), frame.is_call_site.then_some("frame-telling"));
    html! {
        <li key={i} {class} {title}>
            <span class="frame-name">{ if frame.name.is_empty() { "(no name)" } else { short_name(&frame.name, &frame.filename) } }</span>
            <span class="frame-file">{ place(file, frame.line) }</span>
            <span class="frame-folder"><bdi>{ folder.to_owned() }</bdi></span>
        </li>
    }
}
