//! `/sample.pickle`: a sample trace.

use std::sync::OnceLock;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::workloads::sample;

/// The file. Generated at the first request; it is always the same.
static SAMPLE: OnceLock<Bytes> = OnceLock::new();

/// Answers with the sample trace as a snapshot file.
pub(crate) async fn sample() -> Response {
    // Generating it takes a moment, for which other requests don't wait.
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
        Err(error) => {
            tracing::error!(%error, "the sample trace could not be generated");
            (StatusCode::INTERNAL_SERVER_ERROR, "The sample trace could not be generated.\n").into_response()
        }
    }
}
