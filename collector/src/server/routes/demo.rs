//! `/api/v1/demo`: a training job to watch for people who have none.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::{blocking, find};
use crate::server::App;
use crate::server::demo::Started;
use crate::server::error::{ApiError, ErrorJson};
use crate::server::json::{self, SessionJson};

/// Starts a built-in training job that publishes to this server.
///
/// One demo runs at a time, for at most ten minutes.
#[utoipa::path(
    post,
    path = "/api/v1/demo",
    operation_id = "start_demo",
    security(("token" = [])),
    responses(
        (status = 200, description = "A demo is running already: its session.", body = SessionJson),
        (status = 201, description = "The demo was started: its session.", body = SessionJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 503, description = "The demo could not be started.", body = ErrorJson),
    )
)]
pub(crate) async fn demo(State(app): State<App>) -> Result<Response, ApiError> {
    let failed = |reason: String| {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "demo", format!("The demo could not be started: {reason}."))
    };
    let (demo, address) = (app.demo.clone(), app.address);
    let address = address.ok_or_else(|| failed("this server has no address".to_owned()))?;
    let token = app.sessions.access().own_token().map(str::to_owned);
    let certificate = app.tls.as_ref().and_then(|tls| tls.certificate());
    let (status, id) = match blocking(move || demo.start(address, token, certificate)).await?.map_err(failed)? {
        Started::New(id) => (StatusCode::CREATED, id),
        Started::Running(id) => (StatusCode::OK, id),
    };
    let session = find(&app, &id)?;
    Ok((status, Json(json::session(&session, app.limits()))).into_response())
}
