//! `/api/v1/sessions/{id}/ask`: requests to the collector of a running job.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::find;
use crate::server::App;
use crate::server::error::ApiError;

/// The body of a request.
#[derive(Debug, Deserialize)]
pub(crate) struct Question {
    what: String,
}

/// Forwards a question to the collector, which answers with further events of the trace.
pub(crate) async fn ask(
    State(app): State<App>,
    Path(id): Path<String>,
    question: Result<Json<Question>, JsonRejection>,
) -> Result<StatusCode, ApiError> {
    let session = find(&app, &id)?;
    let known = |question: &Question| matches!(question.what.as_str(), "history" | "state");
    let Some(Json(question)) = question.ok().filter(|question| known(question)) else {
        let message = "Send {\"what\":\"history\"} or {\"what\":\"state\"} as application/json.";
        return Err(ApiError::malformed(message));
    };
    if session.state(app.limits()) != shared::wire::SessionState::Live {
        return Err(ApiError::new(StatusCode::CONFLICT, "state", "The session is not live."));
    }
    session.ask(&question.what);
    Ok(StatusCode::ACCEPTED)
}
