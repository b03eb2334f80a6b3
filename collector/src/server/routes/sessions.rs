//! `/api/v1/sessions`: the list of sessions, one session, and its deletion.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{blocking, find};
use crate::access::{Caller, Role, audit};
use crate::ingest::Session;
use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};
use crate::server::json::{self, SessionJson};

/// The most sessions in a list.
const LIMIT: usize = 1_000;

/// The query of a list.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// The most sessions to list.
    #[param(minimum = 0, maximum = 1000, default = 1000)]
    limit: Option<usize>,
    /// The id of the last session of the page before: the list continues after it.
    after: Option<String>,
}

/// A list of sessions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sessions)]
pub(crate) struct SessionsJson {
    sessions: Vec<SessionJson>,
    /// The number of sessions that are kept, listed or not.
    total: usize,
    /// Whether the server still looks through its store, so that sessions may be missing.
    loading: bool,
    /// The roles in which the token of the request may act.
    #[schema(value_type = Vec<String>, example = json!(["read"]))]
    roles: Vec<&'static str>,
    /// Whether the request may also pin and delete sessions.
    may_manage: bool,
}

/// Lists the sessions that are kept, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/sessions",
    operation_id = "list_sessions",
    params(ListQuery),
    security(("token" = [])),
    responses(
        (status = 200, description = "The sessions.", body = SessionsJson),
        (status = 400, description = "limit is not a number.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 404, description = "The session of `after` is not kept any more.", body = ErrorJson),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<SessionsJson>, ApiError> {
    let Query(ListQuery { limit, after }) =
        query.map_err(|_| ApiError::malformed("limit must be a number of at most 1000."))?;
    let limit = limit.unwrap_or(LIMIT).min(LIMIT);
    let mut sessions: Vec<_> = app
        .sessions
        .all()
        .into_iter()
        .map(|session| (Reverse(session.look(|view| view.record.created_us)), session))
        .collect();
    let total = sessions.len();
    let in_order = |(created, session): &(Reverse<i64>, Arc<Session>), (other, next): &(Reverse<i64>, Arc<Session>)| {
        created.cmp(other).then_with(|| session.id().cmp(next.id()))
    };
    if let Some(after) = after {
        let last = sessions.iter().find(|(_, session)| session.id() == after).cloned();
        let last = last.ok_or_else(ApiError::no_session)?;
        sessions.retain(|session| in_order(session, &last).is_gt());
    }
    // Of very many sessions only those of this page are sorted.
    if limit < sessions.len() {
        sessions.select_nth_unstable_by(limit, in_order);
        sessions.truncate(limit);
    }
    sessions.sort_unstable_by(in_order);
    let loading = !app.sessions.is_loaded();
    let sessions = sessions.iter().map(|(_, session)| json::session(session, app.limits())).collect();
    let grant = caller.grant.ok().flatten();
    let roles = grant.iter().flat_map(|grant| grant.roles().permitted()).map(Role::name).collect();
    let may_manage = grant.is_some_and(|grant| grant.check_managing().is_ok());
    Ok(Json(SessionsJson { sessions, total, loading, roles, may_manage }))
}

/// Returns one session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}",
    operation_id = "get_session",
    params(("id" = String, Path, description = "The session's id: 26 characters of a-z and 2-7.")),
    security(("token" = [])),
    responses(
        (status = 200, description = "The session.", body = SessionJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 404, description = "There is no such session.", body = ErrorJson),
    )
)]
pub(crate) async fn one(State(app): State<App>, Path(id): Path<String>) -> Result<Json<SessionJson>, ApiError> {
    Ok(Json(json::session(&*find(&app, &id)?, app.limits())))
}

/// Deletes a session that is not live.
#[utoipa::path(
    delete,
    path = "/api/v1/sessions/{id}",
    operation_id = "delete_session",
    params(("id" = String, Path, description = "The session's id: 26 characters of a-z and 2-7.")),
    security(("token" = [])),
    responses(
        (status = 204, description = "The session was deleted."),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 404, description = "There is no such session.", body = ErrorJson),
        (status = 409, description = "The session is live.", body = ErrorJson),
    )
)]
pub(crate) async fn delete(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let session = find(&app, &id)?;
    if session.state(app.limits()) == wire::SessionState::Live {
        let message = "The session is live. It can be deleted when its job has ended.";
        return Err(ApiError::new(StatusCode::CONFLICT, "state", message));
    }
    blocking(move || app.sessions.remove(&session)).await??;
    audit::session_deleted(&caller, &id);
    Ok(StatusCode::NO_CONTENT)
}
