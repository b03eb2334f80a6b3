//! Authentication, for servers that were started with a token.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::App;
use super::error::ApiError;
use crate::ingest::Sessions;

/// Passes on requests that carry the token, or all if none is required.
pub(super) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    match has_token(request.headers(), &app.sessions) {
        Ok(true) => next.run(request).await,
        Ok(false) => ApiError::token().into_response(),
        Err(error) => error.into_response(),
    }
}

/// Returns whether a request carries the token, or none is required. A request without the header may send the token in its
/// first message; a wrong token is an error.
pub(super) fn has_token(headers: &HeaderMap, sessions: &Sessions) -> Result<bool, ApiError> {
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(!sessions.wants_token()) };
    let token = value.to_str().ok().and_then(|value| value.split_once(' '));
    match token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
        Some((_, token)) if sessions.accepts(token.trim()) => Ok(true),
        _ => Err(ApiError::token()),
    }
}
