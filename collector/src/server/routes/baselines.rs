//! `/api/v1/baselines`: runs in brief, which later ones are compared with.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use super::blocking;
use crate::access::{Caller, audit};
use crate::baseline::{BASELINE_NAME, Baseline, is_baseline_name};
use crate::server::App;
use crate::server::baselines::{Baselines, NotKept, Replaced, version};
use crate::server::error::{ApiError, ErrorJson};
use crate::store::StoreError;

/// The baselines of a server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Baselines)]
pub(crate) struct BaselinesJson {
    baselines: Vec<BaselineJson>,
}

/// A baseline.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Baseline)]
struct BaselineJson {
    /// Its name.
    #[schema(example = "nightly")]
    name: String,
    /// Its bytes.
    bytes: u64,
}

fn baselines(app: &App) -> Result<Arc<Baselines>, ApiError> {
    let off = || ApiError::new(StatusCode::NOT_FOUND, "baselines", "This server keeps no baselines.");
    app.baselines.clone().ok_or_else(off)
}

fn refused(error: StoreError) -> ApiError {
    match error {
        StoreError::Missing => {
            ApiError::new(StatusCode::NOT_FOUND, "baseline", "The server has no baseline of this name.")
        }
        error => error.into(),
    }
}

fn not_kept(why: NotKept) -> ApiError {
    match why {
        NotKept::Changed => {
            ApiError::new(StatusCode::PRECONDITION_FAILED, "changed", "Somebody changed this baseline meanwhile.")
        }
        NotKept::Busy => ApiError::busy("Somebody else is changing this baseline."),
        NotKept::Full => ApiError::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "full",
            "The server keeps as many baselines as it may. Delete one that is not needed.",
        ),
        NotKept::Store(error) => refused(error),
    }
}

/// Lists the baselines.
#[utoipa::path(
    get,
    path = "/api/v1/baselines",
    operation_id = "baselines",
    security(("token" = [])),
    responses(
        (status = 200, description = "The baselines, by name.", body = BaselinesJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
    )
)]
pub(crate) async fn list(State(app): State<App>) -> Result<Json<BaselinesJson>, ApiError> {
    let kept = baselines(&app)?;
    let all = blocking(move || kept.list()).await?.map_err(refused)?;
    let baselines = all.into_iter().map(|(name, bytes)| BaselineJson { name, bytes }).collect();
    Ok(Json(BaselinesJson { baselines }))
}

/// Returns a baseline.
#[utoipa::path(
    get,
    path = "/api/v1/baselines/{name}",
    operation_id = "baseline",
    params(("name" = String, Path, description = "The baseline's name.")),
    security(("token" = [])),
    responses(
        (status = 200, description = "The baseline, as `vramscope baseline set` writes it. The header `etag` identifies this version of it.", body = String, content_type = "application/json"),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 404, description = "There is no such baseline.", body = ErrorJson),
    )
)]
pub(crate) async fn one(State(app): State<App>, Path(name): Path<String>) -> Result<Response, ApiError> {
    let kept = baselines(&app)?;
    let bytes = blocking(move || kept.get(&name)).await?.map_err(refused)?;
    let tag = format!("\"{}\"", version(&bytes));
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store"), (ETAG, tag.as_str())];
    Ok((headers, bytes).into_response())
}

/// Keeps a baseline.
///
/// With the header `if-match`, only in place of the version with that `etag`; with `if-none-match: *`, only as a new one.
#[utoipa::path(
    put,
    path = "/api/v1/baselines/{name}",
    operation_id = "keep_baseline",
    params(
        ("name" = String, Path, description = "The baseline's name: 1 to 64 letters, digits, dots, - and _."),
        ("if-match" = Option<String>, Header, description = "The `etag` of the version that it replaces."),
        ("if-none-match" = Option<String>, Header, description = "`*` for a new one.")
    ),
    request_body(content = String, content_type = "application/json", description = "A baseline, as `vramscope baseline set` writes it."),
    security(("token" = [])),
    responses(
        (status = 204, description = "It is kept. The header `etag` identifies this version of it."),
        (status = 400, description = "The name or the body is invalid.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 412, description = "Somebody changed it meanwhile.", body = ErrorJson),
        (status = 413, description = "The body is too large.", body = ErrorJson),
        (status = 503, description = "Somebody else is changing it.", body = ErrorJson),
        (status = 507, description = "The server keeps as many baselines as it may.", body = ErrorJson),
    )
)]
pub(crate) async fn keep(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let kept = baselines(&app)?;
    if !is_baseline_name(&name) {
        return Err(ApiError::malformed(BASELINE_NAME));
    }
    let body = body.map_err(|error| ApiError::new(error.status(), "malformed", error.body_text()))?;
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let replaced = match (header(IF_MATCH), header(IF_NONE_MATCH)) {
        (Some(tag), _) => Replaced::Version(tag.trim_matches('"').to_owned()),
        (None, Some(_)) => Replaced::Nothing,
        (None, None) => Replaced::Any,
    };
    let put = blocking({
        let name = name.clone();
        move || match Baseline::parse(&body) {
            Ok(_) => Ok(kept.put(&name, &body, &replaced)),
            Err(sentence) => Err(sentence),
        }
    });
    let put = put.await?.map_err(|sentence| ApiError::malformed(&sentence))?;
    let version = put.map_err(not_kept)?;
    audit::baseline_kept(&caller, &name);
    Ok((StatusCode::NO_CONTENT, [(ETAG, format!("\"{version}\""))]).into_response())
}

/// Deletes a baseline.
#[utoipa::path(
    delete,
    path = "/api/v1/baselines/{name}",
    operation_id = "delete_baseline",
    params(("name" = String, Path, description = "The baseline's name.")),
    security(("token" = [])),
    responses(
        (status = 204, description = "It is deleted."),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 404, description = "There is no such baseline.", body = ErrorJson),
        (status = 503, description = "Somebody else is changing it.", body = ErrorJson),
    )
)]
pub(crate) async fn delete(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    let kept = baselines(&app)?;
    {
        let name = name.clone();
        blocking(move || kept.remove(&name)).await?.map_err(not_kept)?;
    }
    audit::baseline_deleted(&caller, &name);
    Ok(StatusCode::NO_CONTENT)
}
