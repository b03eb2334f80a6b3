//! The list of recent files on the start page. Empty if the browser keeps none.

use trace::limits::{RECENT_COPIES_BYTES, RECENT_COPY_BYTES};
use trace::units::Bytes;
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::{Recent, recent_of};
use crate::source;
use crate::widgets::format::{ago_text, wall_clock};
use crate::widgets::icon::{Symbol, icon};

/// Renders the recent files.
pub fn recent_files(model: &ModelHandle) -> Html {
    let Some(recent) = model.recent.as_ref().filter(|recent| !recent.is_empty()) else { return Html::default() };
    let now_us = (js_sys::Date::now() * 1e3) as i64;
    let on_forget = {
        let model = model.clone();
        Callback::from(move |_| source::forget(&model, None))
    };
    html! {
        <section class="recent" aria-labelledby="recent-title" data-testid="recent">
            <header>
                <h2 id="recent-title">{ "Recent files" }</h2>
                <button type="button" class="button" onclick={on_forget} data-testid="forget-all">{ "Forget all" }</button>
            </header>
            <ul class="recent-list">{ for recent.iter().map(|file| row(model, file, now_us)) }</ul>
            <p class="drop-note" data-testid="recent-note">{ note(recent) }</p>
        </section>
    }
}

fn row(model: &ModelHandle, file: &Recent, now_us: i64) -> Html {
    let on_open = {
        let (model, id) = (model.clone(), file.id.clone());
        Callback::from(move |_| source::open_recent(&model, &id))
    };
    let on_forget = {
        let (model, id) = (model.clone(), file.id.clone());
        Callback::from(move |_| source::forget(&model, Some(&id)))
    };
    let ago = ago_text(now_us.saturating_sub(file.opened_us));
    html! {
        <li key={file.id.clone()} class="recent-file" data-testid="recent-file">
            <button type="button" class="session-open" onclick={on_open} title={file.name.clone()} data-testid="recent-open">{ &file.name }</button>
            <span class="recent-headline">
                if file.has_oom {
                    <span class="session-bad">{ icon(Symbol::Flag) }{ "out of memory" }</span>
                }
                if file.peak > 0 {
                    <span>{ "peak " }<b>{ Bytes(file.peak).to_string() }</b>{ " reserved" }</span>
                }
            </span>
            <span>{ Bytes(file.bytes).to_string() }</span>
            <span title={wall_clock(file.opened_us)}>{ ago }</span>
            <span class="session-acts">
                <button type="button" class="icon-button" aria-label={format!("Forget {}", file.name)} title="Forget" onclick={on_forget} data-testid="forget">{ icon(Symbol::Cross) }</button>
            </span>
        </li>
    }
}

/// Returns a note that says where the listed files are.
fn note(recent: &[Recent]) -> String {
    let copies = recent.iter().filter(|file| file.is_copy).map(|file| file.bytes).sum();
    if copies == 0 {
        return "These files are opened from their place on your disk. Nothing is copied.".to_owned();
    }
    format!(
        "This browser keeps {} of copies, which never leave it: of files up to {}, at most {} together. It forgets the oldest \
         first.",
        Bytes(copies),
        Bytes(RECENT_COPY_BYTES),
        Bytes(RECENT_COPIES_BYTES)
    )
}

/// Renders the button that opens the file of a link again, if it is a recent file that the browser opens only on
/// request.
pub fn open_again(model: &ModelHandle) -> Option<Html> {
    let found = recent_of(model.link.as_ref()?, model.recent.as_ref()?)?;
    let on_open = {
        let (model, id) = (model.clone(), found.id.clone());
        Callback::from(move |_| source::open_recent(&model, &id))
    };
    Some(html! {
        <button type="button" class="button is-primary" onclick={on_open} data-testid="open-again">{ "Open again" }</button>
    })
}
