//! `/sample.pickle`: a trace to look at for those who have none at hand.

use std::sync::OnceLock;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::workloads::sample;

/// Made at the first request, and kept: it is the same each time.
static SAMPLE: OnceLock<Bytes> = OnceLock::new();

/// The sample trace as a snapshot file.
pub(crate) async fn sample() -> Response {
    // Making it takes a moment, which other requests don't wait for.
    match tokio::task::spawn_blocking(|| SAMPLE.get_or_init(|| sample::snapshot().into()).clone()).await {
        Ok(bytes) => (
            [
                (CONTENT_TYPE, "application/octet-stream"),
                (CACHE_CONTROL, "no-cache"),
                (CONTENT_DISPOSITION, "attachment; filename=\"sample.pickle\""),
            ],
            bytes,
        )
            .into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "The sample trace could not be made.\n").into_response(),
    }
}
