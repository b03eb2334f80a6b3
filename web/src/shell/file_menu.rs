//! The menu of open files with their progress, and of ways to open another.

use trace::units::Bytes;
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::{Action, Dialog, FileEntry, Phase, Recent, recent_closed};
use crate::source;
use crate::views::controls::sends;
use crate::widgets::icon::{Symbol, icon};
use crate::widgets::menu::Menu;
use crate::worker::message::Stage;

/// Renders the menu.
pub fn file_menu(model: &ModelHandle) -> Html {
    let label = html! {
        <span class="menu-label">{ model.file().map_or_else(|| "Files".to_owned(), |file| file.name.clone()) }</span>
    };
    let on_sample = {
        let model = model.clone();
        Callback::from(move |_| source::open_sample(&model))
    };
    let on_pick = {
        let model = model.clone();
        Callback::from(move |_| source::pick(&model))
    };
    let on_close_all = {
        let model = model.clone();
        Callback::from(move |_| source::close_all(&model))
    };
    html! {
        <Menu {label} name="Files" test_id="file-menu">
            { for model.files.iter().map(|file| row(model, file)) }
            if model.files.len() > 1 {
                <button type="button" class="menu-row" onclick={on_close_all} data-testid="menu-close-all">{ "Close all" }</button>
            }
            if recent_closed(model).next().is_some() {
                <hr />
                <div class="menu-head">{ "Recent files" }</div>
                { for recent_closed(model).map(|file| recent_row(model, file)) }
            }
            <hr />
            if model.place.has_server() {
                <button type="button" class="menu-row" onclick={sends(model, Action::ShowStart)} data-testid="menu-sessions">{ "Start page: jobs and recent files" }</button>
            }
            <button type="button" class="menu-row" onclick={on_pick} data-testid="menu-open-file">{ "Open file…" }</button>
            if model.place.has_server() {
                <button type="button" class="menu-row" onclick={on_sample} data-testid="menu-open-sample">{ "Open sample" }</button>
                if model.has_uploads {
                    <button type="button" class="menu-row" onclick={sends(model, Action::OpenDialog(Dialog::Uploads))} data-testid="menu-uploads">{ "My uploads" }</button>
                }
            }
        </Menu>
    }
}

fn row(model: &ModelHandle, file: &FileEntry) -> Html {
    let key = file.key;
    let on_select = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::SelectFile(key)))
    };
    let on_close = {
        let model = model.clone();
        Callback::from(move |_| source::close(&model, key))
    };
    let close = if file.live.is_some() { "Stop watching" } else { "Close" };
    let current = (model.current == Some(key)).then_some("true");
    html! {
        <div class="file-row" key={key.0}>
            <button type="button" class="menu-row is-tall" aria-current={current} onclick={on_select} title={file.name.clone()} data-testid="file-row">
                <span class="menu-label">{ file.name.clone() }</span>
                <span class="menu-note">{ note(file) }</span>
            </button>
            <span data-keep-open="">
                <button type="button" class="icon-button" aria-label={format!("{close} {}", file.name)} title={close} onclick={on_close} data-testid="file-close">
                    { icon(Symbol::Cross) }
                </button>
            </span>
        </div>
    }
}

fn recent_row(model: &ModelHandle, file: &Recent) -> Html {
    let on_open = {
        let (model, id) = (model.clone(), file.id.clone());
        Callback::from(move |_| source::open_recent(&model, &id))
    };
    html! {
        <button type="button" key={file.id.clone()} class="menu-row is-tall" onclick={on_open} title={file.name.clone()} data-testid="menu-recent">
            <span class="menu-label">{ file.name.clone() }</span>
            <span class="menu-note">{ Bytes(file.bytes).to_string() }</span>
        </button>
    }
}

/// Returns the progress of a file, or its size and the memory that it takes.
pub(super) fn note(file: &FileEntry) -> String {
    match &file.phase {
        Phase::Loading { stage: Stage::Waiting, .. } => "waiting".to_owned(),
        Phase::Loading { total: 0, .. } => "loading".to_owned(),
        Phase::Loading { done, total, .. } => {
            format!("{} %", done.saturating_mul(100).checked_div(*total).unwrap_or(0))
        }
        Phase::Ready { .. } => {
            let what = file
                .live
                .as_ref()
                .map_or_else(|| Bytes(file.size).to_string(), |live| live.status.state.name().to_owned());
            if file.memory > 0 {
                format!("{what} · takes {} of this page’s memory", Bytes(file.memory))
            } else {
                what
            }
        }
        Phase::Away => format!("{} · not loaded; click to load", Bytes(file.size)),
        Phase::Sweep(_) => Bytes(file.size).to_string(),
        Phase::Failed { .. } => "can't be read".to_owned(),
    }
}
