//! `/api/v1/traces/{token}/trace`: the trace of a link, in whole or in part.

use std::ops::Range;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, RANGE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use format::EXTENSION;

use super::super::binary::Binary;
use super::super::blocking;
use super::links::find;
use super::{header, shares};
use crate::access::Caller;
use crate::file_name::file_name;
use crate::server::App;
use crate::server::connection_slots::ConnectionSlot;
use crate::server::error::{ApiError, ErrorJson};
use crate::server::stream;
use crate::shares::{Link, ShareError, ShareResult, Shares};
use crate::store::StoreError;

/// Downloads the trace of a link.
///
/// A part of it can be requested with `Range: bytes=FROM-TO`. The file begins with what is shown first.
#[utoipa::path(
    get,
    path = "/api/v1/traces/{token}/trace",
    operation_id = "shared_trace",
    params(
        ("token" = String, Path, description = "The link's token."),
        ("range" = Option<String>, Header, description = "One range of bytes."),
        ("x-vramscope-key" = Option<String>, Header, description = "The key of a link with a password.")
    ),
    responses(
        (status = 200, description = "The recording, as an attachment.", content_type = "application/octet-stream", body = inline(Binary)),
        (status = 206, description = "The part.", content_type = "application/octet-stream", body = inline(Binary)),
        (status = 401, description = "The server's token is missing or wrong; or, with the code `password`, the link needs its password.", body = ErrorJson),
        (status = 404, description = "There is no such link.", body = ErrorJson),
        (status = 410, description = "The link was deleted, or has expired.", body = ErrorJson),
        (status = 416, description = "The range begins behind the end.", body = ErrorJson),
        (status = 503, description = "There are too many downloads.", body = ErrorJson),
        (status = 504, description = "The object store does not answer.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn shared_trace(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    slot: Option<Extension<Arc<ConnectionSlot>>>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let link = find(&app, &caller, &token, &headers).await?;
    let shares = shares(&app)?;
    let (status, range) = match header(&headers, &RANGE).map(|text| range(text, link.bytes)) {
        None | Some(Asked::Everything) => (StatusCode::OK, 0..link.bytes),
        Some(Asked::Part(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(Asked::Nothing) => {
            let message = format!("The trace has {} bytes.", link.bytes);
            let error = ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, "range", message);
            return Ok(([(CONTENT_RANGE, format!("bytes */{}", link.bytes))], error).into_response());
        }
    };
    let slot = slot.map(|Extension(slot)| slot);
    let busy = || ApiError::busy("There are too many downloads. Try again later.");
    let share = app.downloads.take(1, slot.as_ref()).await.ok_or_else(busy)?;
    let (name, hash, bytes) = (file_name(&link.name, "trace"), link.hash().to_owned(), link.bytes);
    // If the object store does not answer, the client gets an error instead of an empty body.
    let first = {
        let (shares, link, range) = (Arc::clone(&shares), Arc::clone(&link), range.clone());
        blocking(move || piece(&shares, &link, &range)).await??
    };
    let mut left = range.start + first.len() as u64..range.end;
    let body = stream::body(move |writer| {
        let _share = share;
        writer.send(first)?;
        while !left.is_empty() {
            let piece = piece(&shares, &link, &left).map_err(|error| match error {
                ShareError::Store(error) => error,
                ShareError::Away(error) => StoreError::Io(error),
                other => StoreError::Damaged(other.to_string()),
            })?;
            left.start += piece.len() as u64;
            writer.send(piece)?;
        }
        Ok(())
    });
    let mut response = (status, body).into_response();
    let mut set = |name, value: String| {
        // Digits, and a name of harmless characters, are valid in any header.
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    };
    set(CONTENT_TYPE, "application/octet-stream".to_owned());
    set(CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.{EXTENSION}\""));
    set(CONTENT_LENGTH, (range.end - range.start).to_string());
    set(ACCEPT_RANGES, "bytes".to_owned());
    set(ETAG, format!("\"{hash}\""));
    if status == StatusCode::PARTIAL_CONTENT {
        set(CONTENT_RANGE, format!("bytes {}-{}/{bytes}", range.start, range.end - 1));
    }
    Ok(response)
}

/// Reads the first piece of a range.
fn piece(shares: &Shares, link: &Link, range: &Range<u64>) -> ShareResult<Vec<u8>> {
    let most = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(shares.limits().piece_bytes);
    let piece = shares.read(link, range.start, most)?;
    if piece.is_empty() && !range.is_empty() {
        return Err(StoreError::Damaged("a shared trace is shorter than its link says".to_owned()).into());
    }
    Ok(piece)
}

/// The bytes that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    /// All bytes: the header is none that this server understands.
    Everything,
    /// Some bytes; at least one.
    Part(Range<u64>),
    /// Bytes that are not there.
    Nothing,
}

/// Reads the header `Range` for a file of so many bytes. Several ranges count as all bytes, as RFC 9110 permits.
fn range(text: &str, bytes: u64) -> Asked {
    let Some((from, to)) = text.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return Asked::Everything;
    };
    let number = |text: &str| -> Option<u64> {
        let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        if is_number { text.parse().ok() } else { None }
    };
    let asked = match (number(from), number(to)) {
        (Some(from), None) if to.is_empty() => from..bytes,
        (Some(from), Some(to)) if from <= to => from..to.saturating_add(1).min(bytes),
        (None, Some(last)) if from.is_empty() => bytes.saturating_sub(last)..bytes,
        _ => return Asked::Everything,
    };
    if asked.start < asked.end { Asked::Part(asked) } else { Asked::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        for (text, want) in [
            ("bytes=0-0", Asked::Part(0..1)),
            ("bytes=10-19", Asked::Part(10..20)),
            ("bytes=90-", Asked::Part(90..100)),
            ("bytes=90-1000", Asked::Part(90..100)),
            ("bytes=-10", Asked::Part(90..100)),
            ("bytes=-1000", Asked::Part(0..100)),
            ("bytes=0-18446744073709551615", Asked::Part(0..100)),
            ("bytes=100-", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=9-1", Asked::Everything),
            ("bytes=1-2,4-5", Asked::Everything),
            ("bytes=x-2", Asked::Everything),
            ("bytes=-", Asked::Everything),
            ("bytes=+1-2", Asked::Everything),
            ("lines=1-2", Asked::Everything),
            ("", Asked::Everything),
        ] {
            assert_eq!(range(text, 100), want, "{text}");
        }
    }
}
