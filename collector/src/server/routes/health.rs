//! `/healthz`, `/api/v1/health/…`: whether the server is up, and whether it can store anything.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};

/// Answers `ok` whenever the server is up.
pub(crate) async fn health() -> &'static str {
    "ok\n"
}

/// Whether the server is up.
#[utoipa::path(
    get,
    path = "/api/v1/health/live",
    operation_id = "health_live",
    responses(
        (status = 200, description = "The server is up.", content_type = "text/plain", body = String, example = "ok\n"),
    )
)]
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// Whether sessions can be stored and found again: the disk can be written, and the object store, if there is one, belongs to
/// this server.
///
/// Requests that come at the same time share one check of the store.
#[utoipa::path(
    get,
    path = "/api/v1/health/ready",
    operation_id = "health_ready",
    responses(
        (status = 200, description = "The store can be used.", content_type = "text/plain", body = String, example = "ok\n"),
        (status = 503, description = "The store can't be used; the message says why.", body = ErrorJson),
    )
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, ApiError> {
    app.readiness.check(&app.sessions).await.map_err(|error| {
        let message = format!("The store can't be used: {}.", error.reason);
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error.code, message).caused_by(error.reason)
    })?;
    Ok("ok\n".into_response())
}
