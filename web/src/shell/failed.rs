//! A file that can't be read: why, and what to do next.

use shared::units::Bytes;
use yew::prelude::*;

use crate::model::{ModelHandle, Phase};
use crate::source;

/// The reason, and the ways on.
pub fn failed(model: &ModelHandle) -> Html {
    let Some(file) = model.file() else { return Html::default() };
    let Phase::Failed { message } = &file.phase else { return Html::default() };
    let on_close = {
        let (model, key) = (model.clone(), file.key);
        Callback::from(move |_| source::close(&model, key))
    };
    html! {
        <main class="stage" data-testid="failed">
            <div class="failed" role="alert">
                <h1>{ "Can't open " }<span class="file-name">{ file.name.clone() }</span></h1>
                <p class="failed-message" data-testid="error-message">{ message.clone() }</p>
                <p class="failed-note">
                    { Bytes(file.size).to_string() }
                    { ", read in this browser. What opens here: recordings, and snapshots as pickle or JSON, plain, .gz or .zst." }
                </p>
                <p class="buttons">
                    <button type="button" class="button is-primary" onclick={|_| source::pick()} data-testid="open-another">{ "Open another file" }</button>
                    <button type="button" class="button" onclick={on_close} data-testid="close-failed">{ "Close" }</button>
                </p>
            </div>
        </main>
    }
}
