//! `/api/v1/traces/uploads`: an upload in parts.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Deserializer, Serialize};
use tracing::Instrument;
use utoipa::ToSchema;

use super::super::binary::Binary;
use super::super::blocking;
use super::receive::receive_up_to;
use super::{LinkJson, grant, shares, take};
use crate::access::{Caller, Grant, Role, audit};
use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};
use crate::shares::{Begun, Ending, Finished, Offer, Owner, Progress, Shares};
use crate::store::Hash;

/// What will be uploaded.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({ "bytes": 3_596_614, "name": "train.py", "expires_seconds": 2_592_000 }))]
pub(in crate::server) struct Upload {
    /// The bytes of the recording.
    bytes: u64,
    /// The BLAKE3 hash of the recording in 64 hexadecimal digits, to detect what changes on the way.
    hash: Option<String>,
    /// The name of the link; by default that of the recording.
    #[serde(default)]
    name: String,
    /// Seconds until the link expires; `null` for never, by default 30 days.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    expires_seconds: Option<Option<u64>>,
    /// A password that opens the link.
    password: Option<String>,
    /// Whether the link opens without a token of the server.
    #[serde(default)]
    is_public: bool,
}

/// Distinguishes null from absent.
pub(super) fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// An upload that has begun.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Upload)]
pub(in crate::server) struct UploadJson {
    /// The upload's id.
    id: String,
    /// The token of the link, which exists once the upload is finished.
    token: String,
    /// The token that changes and deletes the link. The server can't tell it again.
    delete_token: String,
    /// The bytes that were received.
    received: u64,
    /// The most bytes of one part.
    part_bytes: u64,
}

/// How far an upload has come.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Progress)]
pub(in crate::server) struct ProgressJson {
    /// The bytes that were received; the next part begins there.
    received: u64,
    /// The bytes of the whole upload.
    bytes: u64,
    /// Whether the upload is being finished: another request to finish it waits for that.
    is_finishing: bool,
}

impl From<Progress> for ProgressJson {
    fn from(Progress { received, bytes, is_finishing }: Progress) -> Self {
        Self { received, bytes, is_finishing }
    }
}

/// Returns when a link expires that its maker says nothing or something about.
pub(super) fn expiry(shares: &Shares, wanted: Option<Option<u64>>) -> Option<u64> {
    let usual = shares.limits().expires_seconds;
    wanted.unwrap_or(Some(shares.terms().most_seconds.map_or(usual, |most| most.min(usual))))
}

/// Begins an upload on a thread that may wait.
pub(super) async fn begin(shares: &Arc<Shares>, grant: &Grant, offer: Offer) -> Result<Begun, ApiError> {
    // Hashing a password takes memory.
    let turn = match offer.password {
        Some(_) => Some(shares.checks.clone().acquire_owned().await.map_err(ApiError::internal)?),
        None => None,
    };
    let (shares, grant) = (Arc::clone(shares), grant.clone());
    let begun = blocking(move || {
        // Until it is done, also if the client has gone.
        let _turn = turn;
        shares.begin(&offer, owner(&grant))
    });
    Ok(begun.await??)
}

/// Returns as whom a grant lets share.
pub(super) fn owner(grant: &Grant) -> Owner<'_> {
    Owner { name: grant.name(), bytes: grant.quotas().bytes }
}

/// Begins an upload.
///
/// The recording is sent in parts after that. Nothing can be opened before the upload is finished.
#[utoipa::path(
    post,
    path = "/api/v1/traces/uploads",
    operation_id = "begin_upload",
    request_body = Upload,
    security(("token" = [])),
    responses(
        (status = 201, description = "The upload's id and the tokens of its link.", body = UploadJson),
        (status = 400, description = "The body is invalid.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The server allows no public links; or the request comes from a page of another origin.", body = ErrorJson),
        (status = 413, description = "The recording is too large.", body = ErrorJson),
        (status = 507, description = "The server has no room, or the token's quota is used up.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn begin_upload(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    upload: Result<Json<Upload>, JsonRejection>,
) -> Result<(StatusCode, Json<UploadJson>), ApiError> {
    let shares = shares(&app)?;
    take(&shares.begins, &caller, "uploads")?;
    let malformed = || ApiError::malformed("Send {\"bytes\":N} as application/json; see /api/v1/ for further fields.");
    let Json(Upload { bytes, hash, name, expires_seconds, password, is_public }) = upload.map_err(|_| malformed())?;
    let hash = match hash.as_deref().map(Hash::parse) {
        None => None,
        Some(Some(hash)) => Some(hash),
        Some(None) => return Err(ApiError::malformed("hash is a BLAKE3 hash in 64 hexadecimal digits.")),
    };
    let expires_seconds = expiry(&shares, expires_seconds);
    let offer = Offer { bytes, hash, name, expires_seconds, password, is_public };
    let grant = grant(&caller)?;
    let Begun { id, token, delete_token } = begin(&shares, &grant, offer).await?;
    let part_bytes = shares.limits().part_bytes;
    Ok((StatusCode::CREATED, Json(UploadJson { id, token, delete_token, received: 0, part_bytes })))
}

/// Returns how far an upload has come.
#[utoipa::path(
    get,
    path = "/api/v1/traces/uploads/{id}",
    operation_id = "upload_progress",
    params(("id" = String, Path, description = "The upload's id.")),
    security(("token" = [])),
    responses(
        (status = 200, description = "The bytes that were received.", body = ProgressJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 404, description = "There is no such upload of this token.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn upload_progress(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<ProgressJson>, ApiError> {
    Ok(Json(shares(&app)?.progress(&id, grant(&caller)?.name())?.into()))
}

/// Where a part begins.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::server) struct PartQuery {
    /// The offset of the part's first byte.
    from: u64,
}

/// Sends the next part of an upload.
///
/// What arrived of a part is kept, also if the connection is cut in the middle of it. An upload of which nothing arrives is
/// given up after ten minutes, and any other one after a day, or after a quarter of an hour if others need its room.
#[utoipa::path(
    put,
    path = "/api/v1/traces/uploads/{id}",
    operation_id = "send_part",
    params(("id" = String, Path, description = "The upload's id."), PartQuery),
    request_body(content = inline(Binary), content_type = "application/octet-stream"),
    security(("token" = [])),
    responses(
        (status = 200, description = "The part is stored.", body = ProgressJson),
        (status = 400, description = "A parameter is invalid.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 404, description = "There is no such upload of this token.", body = ErrorJson),
        (status = 408, description = "The body did not arrive in time.", body = ErrorJson),
        (status = 409, description = "The next part begins elsewhere; the message says where.", body = ErrorJson),
        (status = 413, description = "The part is too long.", body = ErrorJson),
        (status = 507, description = "The server has no room, or the token's unfinished uploads have their share of it.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn send_part(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    query: Result<Query<PartQuery>, QueryRejection>,
    body: Body,
) -> Result<Json<ProgressJson>, ApiError> {
    let shares = shares(&app)?;
    let Query(PartQuery { from }) = query.map_err(|_| ApiError::malformed("from is the offset of the first byte."))?;
    let grant = grant(&caller)?;
    let receive = async move {
        let part = {
            let (shares, id, grant) = (Arc::clone(&shares), id.clone(), grant.clone());
            blocking(move || shares.part(&id, owner(&grant), from)).await??
        };
        let (mut stream, mut rest) = (body.into_data_stream(), Bytes::new());
        let received = tokio::select! {
            received = receive_up_to(part, &mut stream, &mut rest, u64::MAX) => received,
            denied = grant.ended(Role::Share) => Err(denied.into()),
        };
        follow(shares, id, grant.name().to_owned());
        received
    };
    // A task of its own: that of the request ends when its connection does, before what arrived is stored.
    let received = tokio::spawn(receive.in_current_span()).await.map_err(ApiError::internal)??;
    Ok(Json(received.into()))
}

/// Checks what has arrived of an upload, while the sender goes on.
pub(super) fn follow(shares: Arc<Shares>, id: String, owner: String) {
    tokio::task::spawn_blocking(move || shares.follow(&id, &owner));
}

/// Gives an upload up.
#[utoipa::path(
    delete,
    path = "/api/v1/traces/uploads/{id}",
    operation_id = "cancel_upload",
    params(("id" = String, Path, description = "The upload's id.")),
    security(("token" = [])),
    responses(
        (status = 204, description = "Everything of it is deleted."),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 404, description = "There is no such upload of this token.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn cancel_upload(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let (shares, grant) = (shares(&app)?, grant(&caller)?);
    blocking(move || shares.cancel(&id, grant.name())).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Finishes an upload.
///
/// The server reads the recording and writes it anew: nothing passes that it does not know. From then on, the link opens.
/// With an object store this may take minutes. The request can be repeated if its answer was lost, also before it is done.
#[utoipa::path(
    post,
    path = "/api/v1/traces/uploads/{id}/finish",
    operation_id = "finish_upload",
    params(("id" = String, Path, description = "The upload's id.")),
    security(("token" = [])),
    responses(
        (status = 201, description = "The link opens. Its token is the one from the beginning of the upload.", body = LinkJson),
        (status = 200, description = "The upload was finished before.", body = LinkJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 404, description = "There is no such upload of this token.", body = ErrorJson),
        (status = 409, description = "Bytes are missing; the message says from where on.", body = ErrorJson),
        (status = 422, description = "It is not a recording, or it changed on the way. The upload is deleted.", body = ErrorJson),
        (status = 504, description = "The object store does not answer.", body = ErrorJson),
        (status = 507, description = "The server has no room.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn finish_upload(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<LinkJson>), ApiError> {
    let finished = finish(shares(&app)?, caller, id).await?;
    let status = if finished.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(LinkJson::new(None, &finished.link))))
}

/// Finishes an upload, or waits for another request that does. Goes on when the client has gone: it asks again.
pub(super) async fn finish(shares: Arc<Shares>, caller: Caller, id: String) -> Result<Finished, ApiError> {
    let grant = grant(&caller)?;
    let alone = shares.finishing(&id, grant.name()).lock_owned().await;
    let finish = async move {
        let _alone = alone;
        let finished = check_and_publish(&shares, &grant, id).await?;
        if finished.is_new {
            audit::link_made(&caller, &finished.hash, finished.link.bytes);
        }
        Ok(finished)
    };
    tokio::spawn(finish.in_current_span()).await.map_err(ApiError::internal)?
}

/// Finishes an upload on threads that may wait, when it is its turn.
async fn check_and_publish(shares: &Arc<Shares>, grant: &Grant, id: String) -> Result<Finished, ApiError> {
    let turn = shares.checks.clone().acquire_owned().await.map_err(ApiError::internal)?;
    let checked = {
        let (shares, grant) = (Arc::clone(shares), grant.clone());
        blocking(move || {
            let _turn = turn;
            shares.check_upload(&id, grant.name())
        })
    };
    let checked = match checked.await?? {
        Ending::Finished(finished) => return Ok(finished),
        Ending::Checked(checked) => checked,
    };
    // An object store may take minutes, in which others are checked.
    let turn = shares.sends.clone().acquire_owned().await.map_err(ApiError::internal)?;
    let (shares, grant) = (Arc::clone(shares), grant.clone());
    let published = blocking(move || {
        let _turn = turn;
        shares.publish(*checked, owner(&grant), || grant.check(Role::Share))
    });
    Ok(published.await??)
}
