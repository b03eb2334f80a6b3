//! The page of a file that can't be read: the reason and what to do next.

use trace::units::Bytes;
use yew::prelude::*;

use super::shared_failed::shared_failed;
use super::token_form::TokenForm;
use crate::hooks::ModelHandle;
use crate::model::{Action, FileEntry, Live, Phase};
use crate::source;
use crate::views::controls::sends;
use crate::worker::message::Connection;

/// Renders the reason and what to do next.
pub fn failed(model: &ModelHandle) -> Html {
    let Some(file) = model.file() else { return Html::default() };
    let Phase::Failed { message } = &file.phase else { return Html::default() };
    if let Some(live) = &file.live {
        return session_failed(model, file, live, message);
    }
    if let Some(link) = &file.shared {
        return shared_failed(model, file, link, message);
    }
    let on_close = {
        let (model, key) = (model.clone(), file.key);
        Callback::from(move |_| source::close(&model, key))
    };
    let on_pick = {
        let model = model.clone();
        Callback::from(move |_| source::pick(&model))
    };
    let on_again = file.url.clone().map(|url| {
        let (model, file) = (model.clone(), file.clone());
        Callback::from(move |_: MouseEvent| source::fetch_again(&model, &file, &url))
    });
    let other = if on_again.is_some() { "button" } else { "button is-primary" };
    // Of a download nothing may have arrived.
    let is_here = file.url.is_none() || file.size > 0;
    html! {
        <main class="stage" data-testid="failed">
            <div class="failed" role="alert">
                <h1>{ "Can't open " }<span class="file-name">{ file.name.clone() }</span></h1>
                <p class="failed-message" data-testid="error-message">{ message.clone() }</p>
                <p class="failed-note">
                    if file.name.ends_with(".py") {
                        { "Will it fit on a GPU? A terminal tells, without one: " }
                        <code>{ "vramscope predict " }{ file.name.clone() }</code>
                    } else if is_here {
                        { Bytes(file.size).to_string() }
                        { ". Supported files: recordings (.vramscope) and PyTorch memory snapshots (pickle or JSON), also as .gz or .zst, and what vramscope sweep --out writes." }
                    }
                </p>
                <p class="buttons">
                    if let Some(onclick) = on_again {
                        <button type="button" class="button is-primary" {onclick} data-testid="fetch-again">{ "Try again" }</button>
                    }
                    <button type="button" class={other} onclick={on_pick} data-testid="open-another">{ "Open another file" }</button>
                    <button type="button" class="button" onclick={on_close} data-testid="close-failed">{ "Close" }</button>
                </p>
            </div>
        </main>
    }
}

/// Renders a session that can't be watched.
fn session_failed(model: &ModelHandle, file: &FileEntry, live: &Live, message: &str) -> Html {
    let wants_token = matches!(live.status.connection, Connection::Refused { wants_token: true, .. });
    let again = {
        let (model, key, session) = (model.clone(), file.key, live.session.clone());
        move || {
            source::close(&model, key);
            source::watch(&model, &session);
        }
    };
    let on_token = {
        let again = again.clone();
        Callback::from(move |()| again())
    };
    let on_again = Callback::from(move |_: MouseEvent| again());
    html! {
        <main class="stage" data-testid="failed">
            <div class="failed" role="alert">
                <h1>{ "Can't watch " }<span class="file-name">{ file.name.clone() }</span></h1>
                if wants_token {
                    <TokenForm reason={if source::http::token().is_empty() { "" } else { "The server refused the token. Enter one with the read role." }} {on_token} />
                } else {
                    <p class="failed-message" data-testid="error-message">{ message.to_owned() }</p>
                }
                <p class="buttons failed-buttons">
                    <button type="button" class="button" onclick={on_again} data-testid="watch-again">{ "Try again" }</button>
                    <button type="button" class="button" onclick={sends(model, Action::ShowStart)} data-testid="back-to-sessions">{ "Go to the start page" }</button>
                </p>
            </div>
        </main>
    }
}
