//! `/api/v1/sessions/{id}/stats`: a session's memory over time, in few numbers.

use axum::Json;
use axum::extract::{Path, State};

use super::{blocking, find};
use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};
use crate::server::json::{self, StatsJson};

/// Returns a session's memory over its whole length.
///
/// Each device has at most 240 points. A point holds the maximum of its time span, taken after each event.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/stats",
    operation_id = "get_stats",
    params(("id" = String, Path, description = "The session's id: 26 characters of a-z and 2-7.")),
    security(("token" = [])),
    responses(
        (status = 200, description = "The statistics.", body = StatsJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 404, description = "There is no such session.", body = ErrorJson),
    )
)]
pub(crate) async fn stats(State(app): State<App>, Path(id): Path<String>) -> Result<Json<StatsJson>, ApiError> {
    let session = find(&app, &id)?;
    Ok(Json(blocking(move || json::stats(&session, app.sessions.store(), app.limits())).await?))
}
