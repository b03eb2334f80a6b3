//! Errors of the API: a status, a word for programs, and a sentence for people.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::ingest::{IngestError, word};
use crate::store::StoreError;

/// See the module.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Body<'a> {
    error: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    code: &'a str,
    message: &'a str,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// No session has this name, or it is none.
    pub(super) fn no_session() -> Self {
        Self::new(StatusCode::NOT_FOUND, "session", "There is no such session.")
    }

    /// A token is wanted.
    pub(super) fn token() -> Self {
        let sentence = "This server wants its token: send it as `Authorization: Bearer TOKEN`.";
        Self::new(StatusCode::UNAUTHORIZED, "token", sentence)
    }

    /// Too many at once.
    pub(super) fn busy(message: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Missing => Self::no_session(),
            StoreError::Full => Self::new(StatusCode::INSUFFICIENT_STORAGE, "full", "The store is full."),
            error => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store", format!("{error}.")),
        }
    }
}

impl From<IngestError> for ApiError {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Store(error) => error.into(),
            IngestError::Busy(_) => Self::new(StatusCode::CONFLICT, "busy", format!("{error}.")),
            error => Self::new(StatusCode::BAD_REQUEST, word(error.code()), format!("{error}.")),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Json(Body { error: Inner { code: self.code, message: &self.message } });
        let mut response = (self.status, body).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let value = axum::http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, value);
        }
        response
    }
}
