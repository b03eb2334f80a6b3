//! The page of a file that is being read: stage, progress, rate and Cancel.

use trace::decimal::Decimal;
use trace::units::Bytes;
use yew::prelude::*;

use super::file_menu::note;
use crate::hooks::ModelHandle;
use crate::model::{FileEntry, Model, Phase, being_read};
use crate::source;
use crate::worker::message::{Connection, Stage};

/// Renders the progress and Cancel.
pub fn loading(model: &ModelHandle) -> Html {
    let Some(file) = model.file() else { return Html::default() };
    let Phase::Loading { stage, done, total, bytes_per_second } = file.phase else { return Html::default() };
    let on_cancel = {
        let (model, key) = (model.clone(), file.key);
        Callback::from(move |_| source::close(&model, key))
    };
    if stage == Stage::Waiting {
        return waiting(model, file, on_cancel);
    }
    let share = (total > 0).then(|| done as f64 / total as f64);
    let is_remote = file.shared.is_some() || file.url.is_some();
    let (what, share, how_far) = match stage {
        Stage::Reading if done == 0 && is_remote => ("Connecting…", None, String::new()),
        Stage::Reading if done == 0 => ("Opening…", None, String::new()),
        // Not every server says how much there is to come.
        Stage::Reading if total == 0 => ("Reading", None, Bytes(done).to_string()),
        Stage::Reading => ("Reading", share, format!("{} of {}", Bytes(done), Bytes(total))),
        Stage::Indexing | Stage::Waiting => ("Indexing", Some(share.unwrap_or(0.0)), Bytes(file.size).to_string()),
    };
    // Casts of floats saturate.
    let rate = if bytes_per_second < 1.0 { String::new() } else { format!("{}/s", Bytes(bytes_per_second as u64)) };
    let percent = share.map(|share| format!("{} %", Decimal::of(share * 100.0, 0))).unwrap_or_default();
    html! {
        <main class="stage" data-testid="loading">
            <div class="loading">
                <h1>{ file.name.clone() }</h1>
                <progress max="1" value={share.map(|share| Decimal::of(share, 3).to_string())} aria-label={what} />
                <p class="loading-line">
                    <span class="loading-stage" data-testid="loading-stage">{ what }</span>
                    <span class="loading-percent" data-testid="loading-percent">{ percent }</span>
                    <span>{ how_far }</span>
                    <span class="loading-rate" data-testid="loading-rate">{ rate }</span>
                </p>
                <button type="button" class="button" onclick={on_cancel} data-testid="cancel">{ "Cancel" }</button>
            </div>
        </main>
    }
}

/// Renders a session without events so far, or a file that is read after others.
fn waiting(model: &Model, file: &FileEntry, on_cancel: Callback<MouseEvent>) -> Html {
    let said = match file.live.as_ref().map(|live| &live.status.connection) {
        None => {
            let first = being_read(model).map(|file| format!("{} ({})", file.name, note(file)));
            format!("Waiting for {}", first.collect::<Vec<_>>().join(" and "))
        }
        Some(Connection::Open) => "Connected. Waiting for the job's first events.".to_owned(),
        Some(Connection::Retrying { seconds }) => format!("The server is not responding; retrying in {seconds} s."),
        _ => "Connecting to the server".to_owned(),
    };
    html! {
        <main class="stage" data-testid="loading">
            <div class="loading">
                <h1>{ file.name.clone() }</h1>
                <progress aria-label="Waiting" />
                <p class="loading-wait" role="status" data-testid="loading-stage">{ said }</p>
                <button type="button" class="button" onclick={on_cancel} data-testid="cancel">{ "Cancel" }</button>
            </div>
        </main>
    }
}
