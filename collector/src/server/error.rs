//! Errors of the API: a status, a code for programs, and a sentence for people.

use std::error::Error;
use std::fmt::Write;

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::access_log::Failure;
use crate::access::Denied;
use crate::ingest::{IngestError, word};
use crate::store::StoreError;

/// Seconds after which a client should try again when a limit is reached.
const RETRY_SECONDS: &str = "5";
const RETRY: HeaderValue = HeaderValue::from_static(RETRY_SECONDS);

/// An error that a route answers with. The cause is logged and never sent.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
    /// Seconds after which to try again.
    retry_after: Option<u64>,
}

/// The body of an error's response.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error, example = json!({ "error": { "code": "session", "message": "There is no such session." } }))]
pub(super) struct ErrorJson {
    #[schema(inline)]
    error: ErrorDetail,
}

#[derive(Debug, Serialize, ToSchema)]
struct ErrorDetail {
    /// A word for programs.
    code: &'static str,
    /// A sentence for people.
    message: String,
}

impl ApiError {
    /// Creates an error without a cause.
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), cause: None, retry_after: None }
    }

    /// Adds what led to the error, for the log.
    #[must_use]
    pub(super) fn caused_by(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Creates an error whose text is the end of a sentence.
    pub(super) fn of(status: StatusCode, code: &'static str, error: &dyn Error) -> Self {
        let message = error.to_string();
        let message = if message.ends_with('.') { capitalized(&message) } else { sentence(error) };
        Self::new(status, code, message)
    }

    /// Sets after how many seconds to try again.
    #[must_use]
    pub(super) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// 400: a parameter or a body is invalid.
    pub(super) fn malformed(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", message)
    }

    /// 404: no session has this id.
    pub(super) fn no_session() -> Self {
        Self::new(StatusCode::NOT_FOUND, "session", "There is no such session.")
    }

    /// 426: the request is not a WebSocket upgrade.
    pub(super) fn socket_required() -> Self {
        Self::new(StatusCode::UPGRADE_REQUIRED, "socket", "This route requires a WebSocket, version 13.")
    }

    /// 503: a limit of the server is reached.
    pub(super) fn busy(message: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }

    /// 500: the server failed for a reason that the client need not know.
    pub(super) fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let message = "The server failed to handle this request. Its log has the reason.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message).caused_by(cause)
    }
}

impl ApiError {
    /// Returns the whole response as text, for a connection that is refused before its request was read.
    pub(super) fn to_http(&self) -> String {
        let body = ErrorJson { error: ErrorDetail { code: self.code, message: self.message.clone() } };
        // Two texts always can be JSON.
        let body = serde_json::to_string(&body).unwrap_or_default();
        format!(
            "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
             retry-after: {RETRY_SECONDS}\r\nconnection: close\r\n\r\n{body}",
            self.status,
            body.len(),
        )
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Missing => Self::no_session(),
            StoreError::Full => {
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "full", "The store is full.").caused_by(error)
            }
            StoreError::DiskFull => {
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "full", "The server's disk is full.").caused_by(error)
            }
            error => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store", format!("{}.", capitalized(&error.to_string())))
                    .caused_by(error)
            }
        }
    }
}

/// 401, 403 or 429: the sender may not do this.
impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        let status = match denied {
            Denied::Missing | Denied::Wrong | Denied::Expired | Denied::Revoked => StatusCode::UNAUTHORIZED,
            Denied::Role(_) | Denied::User | Denied::Secret => StatusCode::FORBIDDEN,
            Denied::Slowed(_) | Denied::Sessions(_) | Denied::SessionRate(_) => StatusCode::TOO_MANY_REQUESTS,
        };
        let message = match denied {
            Denied::Missing => "This server requires a token: send it as `Authorization: Bearer TOKEN`.".to_owned(),
            Denied::Wrong => {
                "This server doesn't know the token. If it was started again, open the link that it printed then; \
                              otherwise ask the person who runs it for a token."
                    .to_owned()
            }
            _ => sentence(&denied),
        };
        Self { retry_after: denied.retry_seconds(), ..Self::new(status, denied.code(), message) }
    }
}

impl From<IngestError> for ApiError {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Store(error) => error.into(),
            IngestError::Denied(denied) => denied.into(),
            IngestError::Busy(_) | IngestError::Removed => Self::new(StatusCode::CONFLICT, "busy", sentence(&error)),
            error => Self::new(StatusCode::BAD_REQUEST, word(error.code()), sentence(&error)),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let cause = self.status.is_server_error().then(|| match &self.cause {
            Some(cause) => chain(&**cause),
            None => self.message.clone(),
        });
        let body = Json(ErrorJson { error: ErrorDetail { code: self.code, message: self.message } });
        let mut response = (self.status, body).into_response();
        response.extensions_mut().insert(Failure { code: self.code, cause });
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, RETRY);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Answers a request for a file that the page does not have.
pub(super) fn not_found(uri: &Uri) -> Response {
    (StatusCode::NOT_FOUND, format!("Nothing is at {}. The page is at /.\n", uri.path())).into_response()
}

/// An error's text as a sentence.
fn sentence(error: &dyn Error) -> String {
    capitalized(&error.to_string()) + "."
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// An error and its causes, separated by colons. A cause that the text before it contains already is left out.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            // Writing to a string can't fail.
            let _ = write!(text, ": {said}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    #[test]
    fn a_failure_of_the_server_keeps_its_causes_for_the_log_and_sends_none() {
        let response = ApiError::internal(Outer(io::Error::other("the disk is gone"))).into_response();
        let failure = response.extensions().get::<Failure>().unwrap();
        assert_eq!((failure.code, failure.cause.as_deref()), ("internal", Some("outer: the disk is gone")));
        assert!(ApiError::no_session().into_response().extensions().get::<Failure>().unwrap().cause.is_none());
    }
}
