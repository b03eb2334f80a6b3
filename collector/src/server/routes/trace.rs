//! `/api/v1/sessions/{id}/trace`: a session as a file.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use shared::export;
use shared::limits::ImportLimits;
use shared::recording::Decoder;
use tokio::sync::Semaphore;

use super::find;
use crate::server::App;
use crate::server::clock::in_file_name;
use crate::server::error::ApiError;
use crate::server::recording::Recording;
use crate::server::stream::{self, Broken};

/// Pickles that are made at once: each takes much memory.
static PICKLES: Semaphore = Semaphore::const_new(1);

/// What may be asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    format: Option<String>,
    from_us: Option<i64>,
    to_us: Option<i64>,
}

/// The session, or the segments of it that overlap a span of time, as a recording or as PyTorch's own pickle.
pub(crate) async fn trace(
    State(app): State<App>,
    Path(id): Path<String>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, ApiError> {
    let session = find(&app, &id)?;
    let malformed = |sentence: &str| ApiError::new(StatusCode::BAD_REQUEST, "malformed", sentence);
    let Query(wanted) = wanted.map_err(|_| malformed("from_us and to_us are microseconds since the epoch."))?;
    let store = Arc::clone(app.sessions.store());
    let span = (wanted.from_us.unwrap_or(i64::MIN), wanted.to_us.unwrap_or(i64::MAX));
    if span.0 > span.1 {
        return Err(malformed("from_us is later than to_us."));
    }
    let Some(recording) = Recording::new(store, &session, span) else {
        return Err(ApiError::new(StatusCode::NOT_FOUND, "empty", "Nothing is stored of that time."));
    };
    let name = session.look(|view| {
        // Of one script there are many sessions.
        [&file_name(&view.record.name, &view.record.id), "-", &in_file_name(view.record.created_us)].concat()
    });
    let (ending, body) = match wanted.format.as_deref() {
        None | Some("vramscope") => ("vramscope", stream::body(move |sink| recording.read(&mut |b| sink.send(b)))),
        Some("pickle") => {
            let most = app.limits().pickle_bytes;
            if recording.bytes() > most {
                let sentence = format!(
                    "The session is too large to be made into a pickle here ({} MiB, and {} MiB are the most). Choose a \
                     part with from_us and to_us, or take it with format=vramscope.",
                    recording.bytes() >> 20,
                    most >> 20
                );
                return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "full", sentence));
            }
            let place =
                PICKLES.try_acquire().map_err(|_| ApiError::busy("Another pickle is being made. Try again."))?;
            let body = stream::body(move |sink| {
                let _place = place;
                pickle(&recording, &mut |bytes| sink.send(bytes))
            });
            ("pickle", body)
        }
        Some(_) => return Err(malformed("format is vramscope or pickle.")),
    };
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.{ending}\"")),
    ];
    Ok((headers, body).into_response())
}

/// Decodes a recording and writes it as PyTorch would.
fn pickle(recording: &Recording, send: &mut dyn FnMut(Vec<u8>) -> Result<(), Broken>) -> Result<(), Broken> {
    let mut decoder = Decoder::new(ImportLimits::default());
    recording.read(&mut |bytes| decoder.push(&bytes).map_err(|_| Broken))?;
    let (snapshot, ..) = decoder.finish().map_err(|_| Broken)?;
    let mut sent = Ok(());
    export::pickle(&snapshot, &mut |bytes| {
        if sent.is_ok() {
            sent = send(bytes.to_vec());
        }
    });
    sent
}

/// Characters of a file's name.
const NAME: usize = 60;

/// A name that means nothing to any system or shell: what a session calls itself is anyone's text.
fn file_name(name: &str, id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = name.chars().take(NAME).map(|c| if is_plain(c) { c } else { '-' }).collect();
    let plain = plain.trim_matches(['.', '-']);
    if plain.is_empty() { id.to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_harmless() {
        for (name, want) in [
            ("train.py step 3", "train.py-step-3"),
            ("../../etc/passwd", "etc-passwd"),
            ("a\"; filename=\"b.exe\r\nX: y", "a---filename--b.exe--X--y"),
            ("", "id"),
            ("...", "id"),
            ("é", "id"),
        ] {
            assert_eq!(file_name(name, "id"), want);
        }
        assert_eq!(file_name(&"x".repeat(1_000), "id").len(), NAME);
    }
}
