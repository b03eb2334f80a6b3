//! `/api/v1/sessions/{id}/ask`: something that a person wants to know of a running job.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::find;
use crate::server::App;
use crate::server::error::ApiError;

/// What can be asked.
#[derive(Debug, Deserialize)]
pub(crate) struct Question {
    what: String,
}

/// Asks the collector: 202, and what it has to say comes as part of the trace.
pub(crate) async fn ask(
    State(app): State<App>,
    Path(id): Path<String>,
    question: Result<Json<Question>, JsonRejection>,
) -> Result<StatusCode, ApiError> {
    let session = find(&app, &id)?;
    let known = |question: &Question| matches!(question.what.as_str(), "history" | "state");
    let Some(Json(question)) = question.ok().filter(|question| known(question)) else {
        let sentence = "Ask for {\"what\":\"history\"} or {\"what\":\"state\"}, as application/json.";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "malformed", sentence));
    };
    if session.state(app.limits()) != shared::wire::SessionState::Live {
        return Err(ApiError::new(StatusCode::CONFLICT, "state", "The session is not live."));
    }
    session.ask(&question.what);
    Ok(StatusCode::ACCEPTED)
}
