//! `/healthz`, `/api/v1/health/…`: whether the server is up, and whether it can take anything.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::blocking;
use crate::server::App;
use crate::server::error::ApiError;

/// Always `ok`: a server that can answer is well.
pub(crate) async fn health() -> &'static str {
    "ok\n"
}

/// The same, where the API has it.
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// Whether sessions can be stored: 503 with the reason where the store can't be written.
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, ApiError> {
    match blocking(move || app.sessions.check_store()).await? {
        Ok(()) => Ok("ok\n".into_response()),
        Err(error) => {
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "full", format!("Nothing can be stored: {error}.")))
        }
    }
}
