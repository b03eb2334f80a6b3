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
use utoipa::ToSchema;

use super::binary::Binary;
use super::find;
use crate::server::App;
use crate::server::download::Download;
use crate::server::error::{ApiError, ErrorJson};
use crate::server::stream::{self, BodyError};
use crate::server::timestamp::in_file_name;

/// Pickles that are written at once: each takes much memory.
static PICKLES: Semaphore = Semaphore::const_new(1);

/// The query of a download.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TraceQuery {
    /// The format of the file.
    #[serde(default)]
    #[param(inline, default = "vramscope")]
    format: TraceFormat,
    /// The start of the time span, in microseconds since the epoch.
    from_us: Option<i64>,
    /// The end of the time span, in microseconds since the epoch.
    to_us: Option<i64>,
}

/// The format of a downloaded trace.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum TraceFormat {
    /// A recording of this program.
    #[default]
    Vramscope,
    /// A snapshot for PyTorch's own tools.
    Pickle,
}

/// Downloads a session as a file.
///
/// The file holds the whole session, or the stored parts of it that overlap a time span.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/trace",
    operation_id = "download_trace",
    params(
        ("id" = String, Path, description = "The session's id: 26 characters of a-z and 2-7."),
        TraceQuery
    ),
    security(("token" = [])),
    responses(
        (
            status = 200,
            description = "The file, as an attachment.",
            content_type = "application/octet-stream",
            body = inline(Binary)
        ),
        (status = 400, description = "A parameter is invalid.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 404, description = "There is no such session, or nothing is stored of the time span.", body = ErrorJson),
        (status = 413, description = "The session is too large for a pickle; the message says what to do.", body = ErrorJson),
        (status = 503, description = "Another pickle is being written.", body = ErrorJson),
    )
)]
pub(crate) async fn trace(
    State(app): State<App>,
    Path(id): Path<String>,
    query: Result<Query<TraceQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let session = find(&app, &id)?;
    let malformed = "format must be vramscope or pickle; from_us and to_us must be microseconds since the epoch.";
    let Query(query) = query.map_err(|_| ApiError::malformed(malformed))?;
    let store = Arc::clone(app.sessions.store());
    let span = (query.from_us.unwrap_or(i64::MIN), query.to_us.unwrap_or(i64::MAX));
    if span.0 > span.1 {
        return Err(ApiError::malformed("from_us must not be later than to_us."));
    }
    let Some(download) = Download::new(store, &session, span) else {
        return Err(ApiError::new(StatusCode::NOT_FOUND, "empty", "Nothing is stored for this time span."));
    };
    let name = session.look(|view| {
        // Several sessions of one script need several names.
        [&file_name(&view.record.name, &view.record.id), "-", &in_file_name(view.record.created_us)].concat()
    });
    let (extension, body) = match query.format {
        TraceFormat::Vramscope => {
            ("vramscope", stream::body(move |writer| download.read(&mut |bytes| writer.send(bytes))))
        }
        TraceFormat::Pickle => {
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
