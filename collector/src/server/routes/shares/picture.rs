//! `/api/v1/traces/{token}/picture.png`: the picture in the preview of a link.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::super::binary::Binary;
use super::super::blocking;
use super::super::link_page::preview_of;
use super::links::find;
use super::shares;
use crate::access::Caller;
use crate::picture;
use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};

/// Draws the memory of a link's trace over time.
///
/// A PNG of 1,200 by 630 pixels with the peak and the verdict, for previews of the link.
#[utoipa::path(
    get,
    path = "/api/v1/traces/{token}/picture.png",
    operation_id = "link_picture",
    params(
        ("token" = String, Path, description = "The link's token."),
        ("x-vramscope-key" = Option<String>, Header, description = "The key of a link with a password.")
    ),
    responses(
        (status = 200, description = "The picture.", content_type = "image/png", body = inline(Binary)),
        (status = 401, description = "The server's token is missing or wrong; or, with the code `password`, the link needs its password.", body = ErrorJson),
        (status = 404, description = "There is no such link, or its trace has no preview.", body = ErrorJson),
        (status = 410, description = "The link was deleted, or has expired.", body = ErrorJson),
        (status = 504, description = "The object store does not answer.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn link_picture(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let link = find(&app, &caller, &token, &headers).await?;
    let shares = shares(&app)?;
    let none = || ApiError::new(StatusCode::NOT_FOUND, "preview", "This trace has no preview to draw.");
    let of = Arc::clone(&shares);
    let preview = blocking(move || preview_of(&of, &link)).await??.ok_or_else(none)?;
    // Drawing takes some ten milliseconds.
    let turn = Arc::clone(&shares.checks).acquire_owned().await.map_err(ApiError::internal)?;
    let drawn = blocking(move || {
        let _turn = turn;
        picture::draw(&preview)
    });
    let picture = drawn.await?.map_err(ApiError::internal)?;
    Ok(([(CONTENT_TYPE, "image/png")], picture).into_response())
}
