//! `/api/v1/sessions/{id}/stats`: a session's memory over time, in few numbers.

use axum::Json;
use axum::extract::{Path, State};

use super::find;
use crate::server::App;
use crate::server::error::ApiError;
use crate::server::json::{self, StatsJson};

/// Answers with the statistics of a session.
pub(crate) async fn stats(State(app): State<App>, Path(id): Path<String>) -> Result<Json<StatsJson>, ApiError> {
    Ok(Json(json::stats(&*find(&app, &id)?, app.limits())))
}
