//! `/api/v1/demo`: a training job to watch for people who have none.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::{blocking, find};
use crate::server::App;
use crate::server::demo::Started;
use crate::server::error::ApiError;
use crate::server::json;

/// Starts the demo (201), unless one is running (200). Answers with its session.
pub(crate) async fn demo(State(app): State<App>) -> Result<Response, ApiError> {
    let failed = |reason: String| {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "demo", format!("The demo could not be started: {reason}."))
    };
    let (demo, address, token) = (app.demo.clone(), app.address, app.token.clone());
    let address = address.ok_or_else(|| failed("this server has no address".to_owned()))?;
    let token = token.map(|token| token.to_string());
    let (status, id) = match blocking(move || demo.start(address, token)).await?.map_err(failed)? {
        Started::New(id) => (StatusCode::CREATED, id),
        Started::Running(id) => (StatusCode::OK, id),
    };
    let session = find(&app, &id)?;
    Ok((status, Json(json::session(&session, app.limits()))).into_response())
}
