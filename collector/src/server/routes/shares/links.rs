//! `/api/v1/traces/{token}`: a link.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::blocking;
use super::uploads::{expiry, given};
use super::{DELETE_TOKEN, KEY, LinkJson, check_reader, grant, header, shares, take};
use crate::access::{Caller, Denied, Role, Secret, audit};
use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};
use crate::shares::{Link, ShareError};

/// The limits of sharing on this server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sharing)]
pub(in crate::server) struct SharingJson {
    /// The most bytes of one upload.
    most_bytes: u64,
    /// The most bytes of one part.
    part_bytes: u64,
    /// Seconds until a link expires, unless its maker says otherwise.
    default_expires_seconds: u64,
    /// The most seconds until a link expires; `null` if it may be valid for ever.
    #[schema(required)]
    most_expires_seconds: Option<u64>,
    /// Whether links may open without a token of the server.
    is_public_allowed: bool,
}

/// Returns the limits of sharing on this server.
#[utoipa::path(
    get,
    path = "/api/v1/traces/sharing",
    operation_id = "sharing",
    security(("token" = [])),
    responses(
        (status = 200, description = "The limits.", body = SharingJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn sharing(State(app): State<App>) -> Result<Json<SharingJson>, ApiError> {
    let shares = shares(&app)?;
    let (limits, terms) = (shares.limits(), shares.terms());
    Ok(Json(SharingJson {
        most_bytes: shares.most_bytes(),
        part_bytes: limits.part_bytes,
        default_expires_seconds: expiry(&shares, None).unwrap_or(limits.expires_seconds),
        most_expires_seconds: terms.most_seconds,
        is_public_allowed: terms.allows_public,
    }))
}

/// Finds the link of a token for a reader, who may have to show a key.
pub(super) async fn find(app: &App, caller: &Caller, token: &str, headers: &HeaderMap) -> Result<Arc<Link>, ApiError> {
    let shares = shares(app)?;
    let (found, opened) = {
        let (shares, token) = (Arc::clone(&shares), token.to_owned());
        let key = header(headers, &KEY).map(str::to_owned);
        blocking(move || (shares.find(&token), shares.open_with_key(&token, key.as_deref()))).await?
    };
    check_reader(caller, &shares, &found)?;
    Ok(opened?)
}

/// Describes a link.
#[utoipa::path(
    get,
    path = "/api/v1/traces/{token}",
    operation_id = "link",
    params(
        ("token" = String, Path, description = "The link's token."),
        ("x-vramscope-key" = Option<String>, Header, description = "The key of a link with a password.")
    ),
    responses(
        (status = 200, description = "The link.", body = LinkJson),
        (status = 401, description = "The server's token is missing or wrong; or, with the code `password`, the link needs its password.", body = ErrorJson),
        (status = 404, description = "There is no such link.", body = ErrorJson),
        (status = 410, description = "The link was deleted, or has expired.", body = ErrorJson),
        (status = 504, description = "The object store does not answer.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn link(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Result<Json<LinkJson>, ApiError> {
    let link = find(&app, &caller, &token, &headers).await?;
    Ok(Json(LinkJson::new(Some(token), &link)))
}

/// A link's password.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Password)]
pub(in crate::server) struct PasswordJson {
    password: String,
}

/// A key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Key)]
pub(in crate::server) struct KeyJson {
    /// Stands for the password in the header `x-vramscope-key`, for some hours.
    key: String,
}

/// Opens a link with its password.
#[utoipa::path(
    post,
    path = "/api/v1/traces/{token}/open",
    operation_id = "open_link",
    params(("token" = String, Path, description = "The link's token.")),
    request_body = PasswordJson,
    responses(
        (status = 200, description = "The password is right.", body = KeyJson),
        (status = 400, description = "The body is invalid.", body = ErrorJson),
        (status = 401, description = "The server's token is missing or wrong; or, with the code `password`, the password is wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 404, description = "There is no such link.", body = ErrorJson),
        (status = 410, description = "The link was deleted, or has expired.", body = ErrorJson),
        (status = 504, description = "The object store does not answer.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn open_link(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(token): Path<String>,
    password: Result<Json<PasswordJson>, JsonRejection>,
) -> Result<Json<KeyJson>, ApiError> {
    let shares = shares(&app)?;
    let found = {
        let (shares, token) = (Arc::clone(&shares), token.clone());
        blocking(move || shares.find(&token)).await?
    };
    check_reader(&caller, &shares, &found)?;
    let malformed = |_| ApiError::malformed("Send {\"password\":\"…\"} as application/json.");
    let Json(PasswordJson { password }) = password.map_err(malformed)?;
    found?;
    take(&shares.passwords, &caller, "passwords")?;
    let turn = shares.checks.clone().acquire_owned().await.map_err(ApiError::internal)?;
    let hash = Secret::of(&token);
    let unlocked = blocking(move || {
        let _turn = turn;
        shares.unlock(&token, &password)
    });
    match unlocked.await? {
        Ok(key) => Ok(Json(KeyJson { key })),
        Err(error) => {
            if matches!(error, ShareError::PasswordWrong) {
                audit::link_locked(caller.peer, hash.as_str());
            }
            Err(error.into())
        }
    }
}

/// When a link expires.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Expiry)]
pub(in crate::server) struct ExpiryJson {
    /// Seconds from now on; `null` for never.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>, required)]
    expires_seconds: Option<Option<u64>>,
}

/// Changes when a link expires.
#[utoipa::path(
    put,
    path = "/api/v1/traces/{token}/expiry",
    operation_id = "set_expiry",
    params(
        ("token" = String, Path, description = "The link's token."),
        ("x-vramscope-delete-token" = String, Header, description = "The token that was given to who made the link.")
    ),
    request_body = ExpiryJson,
    responses(
        (status = 200, description = "The link as it is now.", body = LinkJson),
        (status = 400, description = "The body is invalid, or the time is too long.", body = ErrorJson),
        (status = 401, description = "The server's token is wrong.", body = ErrorJson),
        (status = 403, description = "The delete token is not that of the link; or the request comes from a page of another origin.", body = ErrorJson),
        (status = 404, description = "There is no such link.", body = ErrorJson),
        (status = 410, description = "The link was deleted, or has expired.", body = ErrorJson),
        (status = 504, description = "The object store does not answer.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn set_expiry(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(token): Path<String>,
    headers: HeaderMap,
    expiry: Result<Json<ExpiryJson>, JsonRejection>,
) -> Result<Json<LinkJson>, ApiError> {
    let shares = shares(&app)?;
    let Some(delete) = header(&headers, &DELETE_TOKEN).map(str::to_owned) else {
        grant(&caller)?.check(Role::Share)?;
        return Err(ShareError::DeleteToken.into());
    };
    let malformed = || ApiError::malformed("Send {\"expires_seconds\":N} or null as application/json.");
    let Json(ExpiryJson { expires_seconds: Some(seconds) }) = expiry.map_err(|_| malformed())? else {
        return Err(malformed());
    };
    let (wanted, hash) = (token.clone(), Secret::of(&token));
    let link = blocking(move || shares.set_expiry(&wanted, &delete, seconds)).await??;
    audit::link_extended(&caller, hash.as_str());
    Ok(Json(LinkJson::new(Some(token), &link)))
}

/// Deletes a link.
///
/// It is gone at once, and so is its trace unless another link leads to the same one.
#[utoipa::path(
    delete,
    path = "/api/v1/traces/{token}",
    operation_id = "delete_link",
    params(
        ("token" = String, Path, description = "The link's token."),
        ("x-vramscope-delete-token" = Option<String>, Header, description = "The token that was given to who made the link; administrators need none.")
    ),
    responses(
        (status = 204, description = "It is deleted."),
        (status = 401, description = "The delete token is missing, and so is the token of an administrator.", body = ErrorJson),
        (status = 403, description = "The delete token is not that of the link; or the request comes from a page of another origin.", body = ErrorJson),
        (status = 404, description = "There is no such link.", body = ErrorJson),
        (status = 410, description = "The link was deleted before, or has expired.", body = ErrorJson),
        (status = 504, description = "The object store does not answer.", body = ErrorJson),
    )
)]
pub(in crate::server) async fn delete_link(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let shares = shares(&app)?;
    let delete = header(&headers, &DELETE_TOKEN).map(str::to_owned);
    if delete.is_none() {
        grant(&caller)?.check(Role::Admin).map_err(|denied| match denied {
            // Whoever needs no token has the link's own.
            Denied::Secret => ShareError::DeleteToken.into(),
            denied => ApiError::from(denied),
        })?;
    }
    let hash = Secret::of(&token);
    blocking(move || shares.delete(&token, delete.as_deref())).await??;
    audit::link_deleted(&caller, hash.as_str());
    Ok(StatusCode::NO_CONTENT)
}
