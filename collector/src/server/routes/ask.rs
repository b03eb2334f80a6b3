//! `/api/v1/sessions/{id}/ask`: requests to the collector of a running job.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::find;
use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};

/// A question to a collector.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({ "what": "history" }))]
pub(crate) struct Question {
    what: Topic,
}

/// What a collector can be asked for.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Topic {
    /// All events that the job knows.
    History,
    /// The job's segments as they are now.
    State,
}

impl Topic {
    fn name(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::State => "state",
        }
    }
}

/// Asks the collector of a live session for something.
///
/// The answer becomes part of the trace: `history` asks for all events that the job knows, `state` for its segments as they
/// are now.
#[utoipa::path(
    post,
    path = "/api/v1/sessions/{id}/ask",
    operation_id = "ask_collector",
    params(("id" = String, Path, description = "The session's id: 26 characters of a-z and 2-7.")),
    request_body = Question,
    security(("token" = [])),
    responses(
        (status = 202, description = "The collector will be asked."),
        (status = 400, description = "The body is invalid.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 404, description = "There is no such session.", body = ErrorJson),
        (status = 409, description = "The session is not live.", body = ErrorJson),
    )
)]
pub(crate) async fn ask(
    State(app): State<App>,
    Path(id): Path<String>,
    question: Result<Json<Question>, JsonRejection>,
) -> Result<StatusCode, ApiError> {
    let session = find(&app, &id)?;
    let Ok(Json(question)) = question else {
        let message = "Send {\"what\":\"history\"} or {\"what\":\"state\"} as application/json.";
        return Err(ApiError::malformed(message));
    };
    if session.state(app.limits()) != wire::SessionState::Live {
        return Err(ApiError::new(StatusCode::CONFLICT, "state", "The job has ended or is disconnected."));
    }
    session.ask(question.what.name());
    Ok(StatusCode::ACCEPTED)
}
