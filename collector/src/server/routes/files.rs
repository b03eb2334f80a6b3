//! `/api/v1/files`: files of this machine that `vramscope FILE` opens in the page.

use std::fs::File;
use std::io::Read;
use std::path::Path as FilePath;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::binary::Binary;
use super::blocking;
use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};
use crate::server::stream;
use crate::store::StoreError;

/// Bytes that are read and sent at once.
const PIECE_BYTES: usize = 1 << 20;

/// A file to open.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = LocalFile)]
pub(crate) struct OfferJson {
    /// Its absolute path on the machine of the server.
    #[schema(example = "/home/ada/job.pickle")]
    path: String,
}

/// The address of a file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LocalFileAddress)]
pub(crate) struct OfferedJson {
    /// The path of its address, below that of the server.
    #[schema(example = "api/v1/files/0123abcd…/job.pickle")]
    address: String,
}

/// Gives a file of the server's machine an address for the page.
///
/// Only programs of the user who runs the server may do this. They read its secret from its announcement, the file
/// `servers/PID.json` in the user's state folder, and send it as the token. A server that was given tokens, or that answers
/// every user of its machine, opens no files.
#[utoipa::path(
    post,
    path = "/api/v1/files",
    operation_id = "offer_file",
    request_body = OfferJson,
    security(("token" = [])),
    responses(
        (status = 200, description = "The file's address.", body = OfferedJson),
        (status = 400, description = "There is no such file, or the path is not absolute.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The server's secret was not shown; or this server opens no files, because others may use it too.", body = ErrorJson),
    )
)]
pub(crate) async fn offer(
    State(app): State<App>,
    offer: Result<Json<OfferJson>, JsonRejection>,
) -> Result<Json<OfferedJson>, ApiError> {
    if app.sessions.access().keys().is_none() {
        let message =
            "This server opens no files of its machine, because others may use it too. Drop the file on the page.";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "users", message));
    }
    let Json(OfferJson { path }) =
        offer.map_err(|_| ApiError::malformed("The body must be JSON with the field path."))?;
    if !FilePath::new(&path).is_absolute() {
        return Err(ApiError::malformed("path must be absolute."));
    }
    let files = app.files.clone();
    let address = blocking(move || files.offer(FilePath::new(&path))).await?;
    let address = address.map_err(|sentence| ApiError::new(StatusCode::BAD_REQUEST, "file", sentence))?;
    Ok(Json(OfferedJson { address }))
}

/// Downloads a file that was given an address.
#[utoipa::path(
    get,
    path = "/api/v1/files/{id}/{name}",
    operation_id = "local_file",
    params(
        ("id" = String, Path, description = "The id in the file's address."),
        ("name" = String, Path, description = "The file's name, which only people read.")
    ),
    security(("token" = [])),
    responses(
        (status = 200, description = "The file.", content_type = "application/octet-stream", body = inline(Binary)),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 404, description = "The server was not asked to open such a file, or the file is gone.", body = ErrorJson),
    )
)]
pub(crate) async fn file(
    State(app): State<App>,
    Path((id, _name)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let gone = |message: &str| ApiError::new(StatusCode::NOT_FOUND, "file", message);
    let path = app.files.path(&id);
    let path =
        path.ok_or_else(|| gone("The server was started anew since this file was opened. Open it once more."))?;
    let opened = blocking(move || File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)))).await?;
    let (bytes, mut file) =
        opened.map_err(|error| gone("The file is gone, or can't be read any more.").caused_by(error))?;
    let body = stream::body(move |writer| {
        let mut left = bytes;
        while left > 0 {
            let mut piece = vec![0; usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES)];
            // A file that became shorter must not pass for a whole one.
            file.read_exact(&mut piece).map_err(|error| StoreError::Damaged(format!("a file changed: {error}")))?;
            left -= piece.len() as u64;
            writer.send(piece)?;
        }
        Ok(())
    });
    let headers = [(CONTENT_TYPE, "application/octet-stream".to_owned()), (CONTENT_LENGTH, bytes.to_string())];
    Ok((headers, body).into_response())
}
