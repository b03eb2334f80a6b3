//! `/api/v1/sessions/{id}/trace`: a session as a file.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use shared::export;
use shared::format::Decoder;
use shared::limits::ImportLimits;
use tokio::sync::Semaphore;

use super::find;
use crate::server::App;
use crate::server::download::Download;
use crate::server::error::ApiError;
use crate::server::stream::{self, BodyError};
use crate::server::timestamp::in_file_name;

/// Pickles that are written at once: each takes much memory.
static PICKLES: Semaphore = Semaphore::const_new(1);

/// The query of a download.
#[derive(Debug, Deserialize)]
pub(crate) struct TraceQuery {
    format: Option<String>,
    from_us: Option<i64>,
    to_us: Option<i64>,
}

/// Answers with a session, or with the log segments of it that overlap a span of time, as a recording or as a pickle.
pub(crate) async fn trace(
    State(app): State<App>,
    Path(id): Path<String>,
    query: Result<Query<TraceQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let session = find(&app, &id)?;
    let Query(query) =
        query.map_err(|_| ApiError::malformed("from_us and to_us must be microseconds since the epoch."))?;
    let store = Arc::clone(app.sessions.store());
    let span = (query.from_us.unwrap_or(i64::MIN), query.to_us.unwrap_or(i64::MAX));
    if span.0 > span.1 {
        return Err(ApiError::malformed("from_us must not be later than to_us."));
    }
    let Some(download) = Download::new(store, &session, span) else {
        return Err(ApiError::new(StatusCode::NOT_FOUND, "empty", "Nothing is stored of this time span."));
    };
    let name = session.look(|view| {
        // Several sessions of one script need several names.
        [&file_name(&view.record.name, &view.record.id), "-", &in_file_name(view.record.created_us)].concat()
    });
    let (extension, body) = match query.format.as_deref() {
        None | Some("vramscope") => {
            ("vramscope", stream::body(move |writer| download.read(&mut |bytes| writer.send(bytes))))
        }
        Some("pickle") => {
            let most = app.limits().pickle_bytes;
            if download.bytes() > most {
                let message = format!(
                    "The session is too large for a pickle ({} MiB; the limit is {} MiB). Choose a part with from_us and \
                     to_us, or download it with format=vramscope.",
                    download.bytes() >> 20,
                    most >> 20
                );
                return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "full", message));
            }
            let permit = PICKLES
                .try_acquire()
                .map_err(|_| ApiError::busy("Another pickle is being written. Try again later."))?;
            let body = stream::body(move |writer| {
                let _permit = permit;
                write_pickle(&download, &mut |bytes| writer.send(bytes))
            });
            ("pickle", body)
        }
        Some(_) => return Err(ApiError::malformed("format must be vramscope or pickle.")),
    };
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.{extension}\"")),
    ];
    Ok((headers, body).into_response())
}

/// Decodes a recording and writes it as PyTorch would.
fn write_pickle(download: &Download, send: &mut dyn FnMut(Vec<u8>) -> Result<(), BodyError>) -> Result<(), BodyError> {
    let damaged = |error: &dyn std::error::Error| BodyError::Damaged(error.to_string());
    let mut decoder = Decoder::new(ImportLimits::default());
    download.read(&mut |bytes| decoder.push(&bytes).map_err(|error| damaged(&error)))?;
    let (snapshot, ..) = decoder.finish().map_err(|error| damaged(&error))?;
    let mut sent = Ok(());
    export::pickle(&snapshot, &mut |bytes| {
        if sent.is_ok() {
            sent = send(bytes.to_vec());
        }
    });
    sent
}

/// The most characters of a file name.
const NAME_CHARS: usize = 60;

/// Returns a name that has no meaning to any system or shell: a session's own name can be any text.
fn file_name(name: &str, id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = name.chars().take(NAME_CHARS).map(|c| if is_plain(c) { c } else { '-' }).collect();
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
        assert_eq!(file_name(&"x".repeat(1_000), "id").len(), NAME_CHARS);
    }
}
