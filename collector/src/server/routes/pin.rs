//! `/api/v1/sessions/{id}/pin`: whether retention keeps a session.

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{blocking, find};
use crate::access::{Caller, audit};
use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};

/// Whether a session is pinned.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({ "pinned": true }))]
pub(crate) struct Pin {
    pinned: bool,
}

/// Pins a session, or unpins it.
///
/// A pinned session is deleted neither for its age nor for space.
#[utoipa::path(
    put,
    path = "/api/v1/sessions/{id}/pin",
    operation_id = "pin_session",
    params(("id" = String, Path, description = "The session's id: 26 characters of a-z and 2-7.")),
    request_body = Pin,
    security(("token" = [])),
    responses(
        (status = 204, description = "It is pinned or unpinned now."),
        (status = 400, description = "The body is invalid.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 404, description = "There is no such session.", body = ErrorJson),
    )
)]
pub(crate) async fn pin(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    pin: Result<Json<Pin>, JsonRejection>,
) -> Result<StatusCode, ApiError> {
    let session = find(&app, &id)?;
    let Ok(Json(Pin { pinned })) = pin else {
        return Err(ApiError::malformed("Send {\"pinned\":true} or {\"pinned\":false} as application/json."));
    };
    blocking(move || app.sessions.pin(&session, pinned)).await??;
    audit::session_pinned(&caller, &id, pinned);
    Ok(StatusCode::NO_CONTENT)
}
