//! `/healthz`, `/api/v1/health/…`: whether the server is up, and whether it can store anything.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::blocking;
use crate::server::App;
use crate::server::error::ApiError;

/// Answers `ok` whenever the server is up.
pub(crate) async fn health() -> &'static str {
    "ok\n"
}

/// Answers `ok` whenever the server is up, as part of the API.
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// Checks that the store can be written. Answers 503 with the reason if it can't.
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, ApiError> {
    match blocking(move || app.sessions.check_store()).await? {
        Ok(()) => Ok("ok\n".into_response()),
        Err(error) => {
            let message = format!("Nothing can be stored: {error}.");
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "full", message).caused_by(error))
        }
    }
}
