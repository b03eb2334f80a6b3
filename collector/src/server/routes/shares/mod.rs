//! `/api/v1/traces`: traces that are shared by links.
//!
//! A link's token stands in the path, as a link is made to be passed on; the log has the route instead of the path. What
//! changes a link is a second token, in a header.

pub(in crate::server) mod links;
pub(in crate::server) mod picture;
mod receive;
pub(in crate::server) mod trace;
pub(in crate::server) mod upload;
pub(in crate::server) mod uploads;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::trace::units::Moment;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::{Caller, Denied, Grant, Rates, Role};
use crate::server::App;
use crate::server::error::ApiError;
use crate::shares::{Gone, Link, ShareError, Shares, Why};

/// The header with the token that changes and deletes a link.
const DELETE_TOKEN: HeaderName = HeaderName::from_static("x-vramscope-delete-token");
/// The header with the key of somebody who gave a link's password.
const KEY: HeaderName = HeaderName::from_static("x-vramscope-key");

/// Seconds after which to try again if the object store does not answer.
const AWAY_SECONDS: u64 = 10;

/// A link.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Link)]
pub(in crate::server) struct LinkJson {
    /// Its token: 39 characters of a-z and 2-7. The page's address followed by `s-` and the token opens the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// The token that changes and deletes the link; told once, to who uploads.
    #[serde(skip_serializing_if = "Option::is_none")]
    delete_token: Option<String>,
    /// Its name.
    #[schema(example = "train.py")]
    name: String,
    /// The bytes of the recording.
    bytes: u64,
    /// The BLAKE3 hash of the recording, in hexadecimal digits.
    hash: String,
    /// The events of the recording.
    events: u64,
    /// When it was made.
    created_us: i64,
    /// When it expires; `null` for never.
    #[schema(required)]
    expires_us: Option<i64>,
    /// Whether it needs a password.
    has_password: bool,
    /// Whether it opens without a token of the server.
    is_public: bool,
}

impl LinkJson {
    fn new(token: Option<String>, link: &Link) -> Self {
        Self {
            token,
            delete_token: None,
            name: link.name.clone(),
            bytes: link.bytes,
            hash: link.hash().to_owned(),
            events: link.events,
            created_us: link.created_us,
            expires_us: link.expires_us,
            has_password: link.password.is_some(),
            is_public: link.is_public,
        }
    }
}

/// Returns the shares, or the response of a server that has none.
fn shares(app: &App) -> Result<Arc<Shares>, ApiError> {
    let off = || ApiError::new(StatusCode::NOT_FOUND, "sharing", "This server does not share traces.");
    app.shares.clone().ok_or_else(off)
}

/// Returns a header's text.
fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the grant of a caller whose request showed a token, or needed none.
fn grant(caller: &Caller) -> Result<Grant, ApiError> {
    match &caller.grant {
        Ok(Some(grant)) => Ok(grant.clone()),
        Ok(None) => Err(Denied::Missing.into()),
        Err(denied) => Err(denied.clone().into()),
    }
}

/// Checks that a caller may open a link, or learn why it can't be opened.
fn check_reader(caller: &Caller, shares: &Shares, found: &Result<Arc<Link>, ShareError>) -> Result<(), ApiError> {
    if found.as_ref().is_ok_and(|link| link.is_public) && shares.terms().allows_public {
        return Ok(());
    }
    Ok(grant(caller)?.check(Role::Read)?)
}

/// Returns the refusal of somebody who tries too often.
fn too_often(what: &str, wait: Duration) -> ApiError {
    let seconds = wait.as_secs().saturating_add(1);
    let message = format!("Too many {what} came from this address. Try again in {seconds} s.");
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "slowed", message).retry_after(seconds)
}

/// Counts a wrong password, or an upload that begins.
fn take(rates: &Rates, caller: &Caller, what: &str) -> Result<(), ApiError> {
    rates.take(caller.peer, Instant::now()).map_err(|wait| too_often(what, wait))
}

impl From<ShareError> for ApiError {
    fn from(error: ShareError) -> Self {
        use ShareError as E;
        let (status, code) = match &error {
            E::Unknown => (StatusCode::NOT_FOUND, "share"),
            E::Gone(_) => (StatusCode::GONE, "gone"),
            E::PasswordNeeded | E::PasswordWrong => (StatusCode::UNAUTHORIZED, "password"),
            E::DeleteToken => (StatusCode::FORBIDDEN, "delete_token"),
            E::TooLarge(_) | E::PartTooLong(_) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            E::Offset(_) => (StatusCode::CONFLICT, "offset"),
            E::Incomplete(_) => (StatusCode::CONFLICT, "incomplete"),
            E::Hash => (StatusCode::UNPROCESSABLE_ENTITY, "hash"),
            E::Refused(_) => (StatusCode::UNPROCESSABLE_ENTITY, "trace"),
            E::NoUpload => (StatusCode::NOT_FOUND, "upload"),
            E::Busy | E::Taken => (StatusCode::TOO_MANY_REQUESTS, "busy"),
            E::Unfinished(_) => (StatusCode::INSUFFICIENT_STORAGE, "unfinished"),
            E::Quota(_) => (StatusCode::INSUFFICIENT_STORAGE, "quota"),
            E::Full => (StatusCode::INSUFFICIENT_STORAGE, "full"),
            E::NotPublic => (StatusCode::FORBIDDEN, "public"),
            E::ExpiresAtOnce | E::ExpiresLate(_) => (StatusCode::BAD_REQUEST, "expiry"),
            E::Empty | E::PasswordEmpty | E::PasswordTooLong(_) => (StatusCode::BAD_REQUEST, "malformed"),
            E::Away(_) => (StatusCode::GATEWAY_TIMEOUT, "store"),
            E::Random(_) | E::Hashing(_) | E::Denied(_) | E::Store(_) => {
                return if let E::Denied(denied) = error { denied.into() } else { Self::internal(error) };
            }
        };
        if let E::Gone(Gone { why, at_us }) = error {
            let what = if why == Why::Deleted { "was deleted" } else { "expired" };
            let when = Moment::at(at_us).to_minute();
            let message = format!("This link {what} on {when}. Ask the person who sent it for a new one.");
            return Self::new(status, code, message);
        }
        match error {
            E::Away(_) => Self::of(status, code, &error).retry_after(AWAY_SECONDS).caused_by(error),
            error => Self::of(status, code, &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use axum::http::header::RETRY_AFTER;
    use axum::response::IntoResponse;

    use super::*;
    use crate::store::StoreError;

    #[test]
    fn an_object_store_that_is_away_and_a_full_disk_are_told_apart_from_faults_of_the_server() {
        for (kind, status, is_temporary) in [
            (io::ErrorKind::TimedOut, StatusCode::GATEWAY_TIMEOUT, true),
            (io::ErrorKind::StorageFull, StatusCode::INSUFFICIENT_STORAGE, false),
            (io::ErrorKind::QuotaExceeded, StatusCode::INSUFFICIENT_STORAGE, false),
            (io::ErrorKind::Other, StatusCode::INTERNAL_SERVER_ERROR, false),
        ] {
            let error = ShareError::from(StoreError::from(io::Error::from(kind)));
            let response = ApiError::from(error).into_response();
            assert_eq!(
                (response.status(), response.headers().contains_key(RETRY_AFTER)),
                (status, is_temporary),
                "{kind}"
            );
        }
    }
}
