//! `/offline.html`: the page as one file, without a trace. The page puts a trace inside to save it.

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::offline;

/// Answers with the template.
pub(crate) async fn offline() -> Response {
    // Assembling it takes a moment, for which other requests don't wait.
    match tokio::task::spawn_blocking(offline::template).await {
        Ok(Ok(template)) => (
            [
                (CONTENT_TYPE, "text/html; charset=utf-8"),
                (CACHE_CONTROL, "no-cache"),
                // Opened from here, it would fall under this server's policy, which allows no script inside a page.
                (CONTENT_DISPOSITION, "attachment; filename=\"vramscope.html\""),
            ],
            template,
        )
            .into_response(),
        Ok(Err(reason)) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("The page can't be saved: {reason}\n")).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the page could not be assembled as one file");
            (StatusCode::INTERNAL_SERVER_ERROR, "The page can't be saved.\n").into_response()
        }
    }
}
