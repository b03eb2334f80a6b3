//! `/api/v1/sessions/{id}/trace`: a session as a file.
//!
//! Each download has a thread and some MiB of pieces, so there is a [`DownloadSlots`](crate::server::download_slots::DownloadSlots) for them. Writing
//! a pickle takes roughly 20 times the memory of what is stored, from the first byte that is read to the last byte that the
//! connection takes. All pickles together are limited to [`ServerLimits::pickle_bytes`](trace::limits::ServerLimits) of
//! stored bytes, and so to 20 times as much memory: small sessions don't wait for each other, and one of the largest size has
//! to be alone.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use format::export;
use format::recording::Decoder;
use serde::Deserialize;
use trace::limits::ImportLimits;
use utoipa::ToSchema;

use super::binary::Binary;
use super::find;
use crate::file_name::file_name;
use crate::server::app::{App, in_kib};
use crate::server::connection_slots::ConnectionSlot;
use crate::server::download::Download;
use crate::server::error::{ApiError, ErrorJson};
use crate::server::stream::{self, BodyError, BodyWriter};
use crate::server::timestamp::in_file_name;

/// The start and the end of the span that a file covers: stored parts that overlap the requested one are never cut.
const FROM_US: HeaderName = HeaderName::from_static("x-vramscope-from-us");
const TO_US: HeaderName = HeaderName::from_static("x-vramscope-to-us");

const BUSY: &str = "There are too many downloads. Try again later.";
const PICKLES_BUSY: &str = "Other pickles are being written. Try again later.";

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
/// The file holds the whole session, or the stored parts of it that overlap a time span, in either format. A part is never
/// cut, so the file may cover a longer span than the requested one; the headers `x-vramscope-from-us` and
/// `x-vramscope-to-us` tell which. Without the former the file begins with the session, without the latter it reaches to the
/// end.
///
/// A client that reads nothing for 30 seconds, or less than 4 KiB a second, is disconnected.
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
            body = inline(Binary),
            headers(
                ("x-vramscope-from-us" = i64, description = "The start of the span that the file covers, in microseconds since the epoch."),
                ("x-vramscope-to-us" = i64, description = "The end of that span.")
            )
        ),
        (status = 400, description = "A parameter is invalid.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 404, description = "There is no such session, or nothing is stored of the time span.", body = ErrorJson),
        (status = 413, description = "The session is too large for a pickle; the message says what to do.", body = ErrorJson),
        (status = 503, description = "There are too many downloads, or other pickles are being written.", body = ErrorJson),
    )
)]
pub(crate) async fn trace(
    State(app): State<App>,
    Path(id): Path<String>,
    slot: Option<Extension<Arc<ConnectionSlot>>>,
    query: Result<Query<TraceQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let session = find(&app, &id)?;
    let slot = slot.map(|Extension(slot)| slot);
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
    let (from_us, to_us) = download.span();
    let (extension, body) = match query.format {
        TraceFormat::Vramscope => {
            let share = app.downloads.take(1, slot.as_ref()).await.ok_or_else(|| ApiError::busy(BUSY))?;
            let body = stream::body(move |writer| {
                let _share = share;
                download.read(&mut |bytes| writer.send(bytes))
            });
            ("vramscope", body)
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
            let share = app.downloads.take(1, slot.as_ref()).await.ok_or_else(|| ApiError::busy(BUSY))?;
            let memory = app.pickles.take(in_kib(download.bytes()), slot.as_ref()).await;
            let memory = memory.ok_or_else(|| ApiError::busy(PICKLES_BUSY))?;
            let body = stream::body(move |writer| {
                let _shares = (share, memory);
                write_pickle(&download, writer)
            });
            ("pickle", body)
        }
    };
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.{extension}\"")),
    ];
    let span = [(FROM_US, from_us), (TO_US, to_us)];
    let span = span.into_iter().filter_map(|(name, time_us)| Some((name, time_us?.to_string())));
    Ok((headers, AppendHeaders(span), body).into_response())
}

/// Decodes a recording and writes it as PyTorch would.
fn write_pickle(download: &Download, writer: &BodyWriter) -> Result<(), BodyError> {
    let damaged = |error: &dyn std::error::Error| BodyError::Damaged(error.to_string());
    let mut decoder = Decoder::new(ImportLimits::default());
    download.read(&mut |bytes| {
        writer.check()?;
        decoder.push(&bytes).map_err(|error| damaged(&error))
    })?;
    let (snapshot, ..) = decoder.finish().map_err(|error| damaged(&error))?;
    let mut sent = Ok(());
    export::pickle(&snapshot, &mut |bytes| {
        if sent.is_ok() {
            sent = writer.send(bytes.to_vec());
        }
    });
    sent
}
