//! `POST /api/v1/traces`: an upload in one request, for scripts.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header::CONTENT_LENGTH};
use axum::{Extension, Json};
use serde::Deserialize;
use tracing::Instrument;

use super::super::binary::Binary;
use super::super::blocking;
use super::receive::receive_up_to;
use super::uploads::{begin, expiry, finish, follow, owner};
use super::{LinkJson, grant, header, shares, take};
use crate::access::{Caller, Grant, Role};
use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};
use crate::shares::{Begun, Offer, Shares};

/// The header with a link's password.
const PASSWORD: HeaderName = HeaderName::from_static("x-vramscope-password");
/// What stands for a link that does not expire.
const NEVER: &str = "never";

/// The link that is wanted.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::server) struct ShareQuery {
    /// The name of the link; by default that of the recording.
    #[serde(default)]
    name: String,
    /// Seconds until the link expires, or `never`; by default 30 days.
    expires_seconds: Option<String>,
    /// Whether the link opens without a token of the server.
    #[serde(default)]
    is_public: bool,
}

/// Shares a recording that is sent in one request.
///
/// Write it with `vramscope strip FILE -o OUT.vramscope`, which leaves out who recorded it and where; this route refuses
/// anything else than a recording. A password comes in the header `x-vramscope-password`.
#[utoipa::path(
    post,
    path = "/api/v1/traces",
    operation_id = "share_trace",
    params(
        ShareQuery,
        ("x-vramscope-password" = Option<String>, Header, description = "A password that opens the link.")
    ),
    request_body(content = inline(Binary), content_type = "application/octet-stream"),
    security(("token" = [])),
    responses(
        (status = 201, description = "The link opens.", body = LinkJson),
        (status = 400, description = "A parameter is invalid, or the body is incomplete.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The server allows no public links; or the request comes from a page of another origin.", body = ErrorJson),
        (status = 408, description = "The body did not arrive in time.", body = ErrorJson),
        (status = 411, description = "The length of the body is not announced.", body = ErrorJson),
        (status = 413, description = "The recording is too large.", body = ErrorJson),
        (status = 422, description = "The body is not a recording.", body = ErrorJson),
        (status = 504, description = "The object store does not answer.", body = ErrorJson),
        (status = 507, description = "The server has no room, or the token's quota is used up.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn share_trace(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    query: Result<Query<ShareQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<LinkJson>), ApiError> {
    let shares = shares(&app)?;
    take(&shares.begins, &caller, "uploads")?;
    let malformed = || ApiError::malformed("expires_seconds is a number or never; is_public is true or false.");
    let Query(ShareQuery { name, expires_seconds, is_public }) = query.map_err(|_| malformed())?;
    let expires_seconds = match expires_seconds.as_deref() {
        None => expiry(&shares, None),
        Some(NEVER) => None,
        Some(seconds) => Some(seconds.parse().map_err(|_| malformed())?),
    };
    let Some(bytes) = header(&headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok()) else {
        let message = "Announce the length of the body with Content-Length.";
        return Err(ApiError::new(StatusCode::LENGTH_REQUIRED, "length", message));
    };
    let password = header(&headers, &PASSWORD).map(str::to_owned);
    let grant = grant(&caller)?;
    let offer = Offer { bytes, hash: None, name, expires_seconds, password, is_public };
    let receive = async move {
        let Begun { id, token, delete_token } = begin(&shares, &grant, offer).await?;
        let received = tokio::select! {
            received = receive_all(&shares, &grant, &id, (body, bytes)) => received,
            denied = grant.ended(Role::Share) => Err(denied.into()),
        };
        if let Err(error) = received {
            blocking(move || shares.cancel(&id, grant.name())).await??;
            return Err(error);
        }
        let finished = finish(shares, caller, id).await?;
        let json = LinkJson { delete_token: Some(delete_token), ..LinkJson::new(Some(token), &finished.link) };
        Ok((StatusCode::CREATED, Json(json)))
    };
    // A task of its own: that of the request ends when its connection does, and nobody would give the upload up.
    tokio::spawn(receive.in_current_span()).await.map_err(ApiError::internal)?
}

/// Receives a body of so many bytes in parts.
async fn receive_all(
    shares: &Arc<Shares>,
    grant: &Grant,
    id: &str,
    (body, bytes): (Body, u64),
) -> Result<(), ApiError> {
    let (mut stream, mut rest) = (body.into_data_stream(), Bytes::new());
    let mut received = 0;
    while received < bytes {
        let from = received;
        let part = {
            let (shares, id, grant) = (Arc::clone(shares), id.to_owned(), grant.clone());
            blocking(move || shares.part(&id, owner(&grant), from)).await??
        };
        received = receive_up_to(part, &mut stream, &mut rest, shares.limits().part_bytes).await?.received;
        if received == from {
            return Err(ApiError::malformed("The body is incomplete."));
        }
        if received < bytes {
            follow(Arc::clone(shares), id.to_owned(), grant.name().to_owned());
        }
    }
    Ok(())
}
