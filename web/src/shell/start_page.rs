//! The start page: what Vramscope is, the jobs to watch, and how to get a file.

use yew::prelude::*;

use super::recent_files::{open_again, recent_files};
use super::session_list::SessionList;
use crate::hooks::ModelHandle;
use crate::model::{Action, Dialog, Place};
use crate::source;
use crate::widgets::copy::CopyButton;
use crate::widgets::empty::RECORD_SNIPPET;
use crate::widgets::icon::{Symbol, icon};

/// What the page is for: when, and what it does then.
const USES: [(&str, &str); 4] = [
    ("Before it runs: ", "vramscope predict train.py tells whether it fits, without a GPU."),
    (
        "After a crash: ",
        "drop a snapshot. See why memory ran out, which line held it, and which setting would have avoided it.",
    ),
    ("While it trains: ", "watch a job's memory as it runs."),
    ("With others: ", "share a link to exactly what you see."),
];

/// Renders the start page.
pub fn start_page(model: &ModelHandle) -> Html {
    let awaited = model.link.as_ref().and_then(|link| link.file.clone());
    let on_sample = {
        let model = model.clone();
        Callback::from(move |_| source::open_sample(&model))
    };
    let on_pick = {
        let model = model.clone();
        Callback::from(move |_| source::pick(&model))
    };
    let on_uploads = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::OpenDialog(Dialog::Uploads)))
    };
    let on_explain = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::OpenDialog(Dialog::Explain)))
    };
    let files = html! {
        <div class="start-files">
            { recent_files(model) }
            <div class="start-open">
            <div class="drop-target" data-testid="drop-target">
                { icon(Symbol::Open) }
                <p>{ "Drop a PyTorch memory snapshot or a recording anywhere on this page" }</p>
                <p class="buttons">
                    <button type="button" class="button is-primary" onclick={on_pick} data-testid="open-file">{ "Open file" }</button>
                    if model.place.has_server() {
                        <button type="button" class="button" onclick={on_explain} data-testid="start-explain">{ "Explain an error" }</button>
                    }
                    if model.place.has_server() && model.has_uploads {
                        <button type="button" class="button" onclick={on_uploads} data-testid="start-uploads">{ "My uploads" }</button>
                    }
                </p>
                <p class="drop-note">{ "A trace that you open stays in this browser, unless you share it." }</p>
            </div>
            if model.place.has_server() {
                <button type="button" class="start-sample" onclick={on_sample} data-testid="open-sample">
                    <span class="start-picture" aria-hidden="true" />
                    <span class="start-caption"><b>{ "Open sample" }</b><span class="dim">{ ": a training run that leaks, then runs out of memory" }</span></span>
                </button>
            }
            </div>
        </div>
    };
    html! {
        <main class="stage" data-testid="start">
            <div class="start">
                <h1>{ "See what used GPU memory, when, and from which line of code" }</h1>
                <ul class="start-uses">
                    { for USES.iter().map(|(when, what)| html! { <li key={*when}><b>{ *when }</b>{ *what }</li> }) }
                </ul>
                if let Some(name) = awaited {
                    <p class="start-link" role="status" data-testid="awaited">
                        if model.is_reopening {
                            { "Opening “" }<strong>{ name }</strong>{ "” again…" }
                        } else {
                            { "This link is for “" }<strong>{ name }</strong>{ "”. Drop that file here to open it." }
                            { for open_again(model) }
                        }
                    </p>
                }
                if model.place == Place::Embedded {
                    <p class="start-link" role="status" data-testid="awaits-message">{ "Waiting for a trace from the site that opened this page." }</p>
                }
                if model.place.has_server() {
                    <SessionList>{ files }</SessionList>
                } else {
                    { files }
                }
                <section class="recipe" aria-labelledby="recipe-title">
                    <header>
                        <h2 id="recipe-title">{ "Record a snapshot" }</h2>
                        <CopyButton text={RECORD_SNIPPET} label="Copy" />
                    </header>
                    <pre><code>{ RECORD_SNIPPET }</code></pre>
                </section>
            </div>
        </main>
    }
}
