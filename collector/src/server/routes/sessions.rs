//! `/api/v1/sessions`: which there are.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{blocking, find};
use crate::ingest::Session;
use crate::server::App;
use crate::server::error::ApiError;
use crate::server::json::{self, SessionJson};

/// Sessions that are listed at most.
const LIMIT: usize = 1_000;

/// What a list may ask for.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    limit: Option<usize>,
}

/// A list.
#[derive(Debug, Serialize)]
pub(crate) struct List {
    sessions: Vec<SessionJson>,
}

/// All sessions, the newest first.
pub(crate) async fn list(
    State(app): State<App>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<List>, ApiError> {
    let limit = wanted
        .map_or(Err(()), |Query(wanted)| Ok(wanted.limit))
        .map_err(|()| ApiError::new(StatusCode::BAD_REQUEST, "malformed", "limit is a number, up to 1000."))?;
    let mut sessions = app.sessions.all();
    let newest =
        |session: &Arc<Session>| session.look(|view| (Reverse(view.record.created_us), view.record.id.clone()));
    sessions.sort_by_cached_key(newest);
    sessions.truncate(limit.unwrap_or(LIMIT).min(LIMIT));
    Ok(Json(List { sessions: sessions.iter().map(|session| json::session(session, app.limits())).collect() }))
}

/// One session.
pub(crate) async fn one(State(app): State<App>, Path(id): Path<String>) -> Result<Json<SessionJson>, ApiError> {
    Ok(Json(json::session(&*find(&app, &id)?, app.limits())))
}

/// Deletes a session that is not live.
pub(crate) async fn delete(State(app): State<App>, Path(id): Path<String>) -> Result<StatusCode, ApiError> {
    let session = find(&app, &id)?;
    if session.state(app.limits()) == shared::wire::SessionState::Live {
        let sentence = "The session is live: it can be deleted once its job has ended.";
        return Err(ApiError::new(StatusCode::CONFLICT, "state", sentence));
    }
    blocking(move || app.sessions.remove(&session)).await??;
    Ok(StatusCode::NO_CONTENT)
}
