//! Who may use the API of a server that was given a token.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::App;
use super::error::ApiError;
use crate::ingest::Sessions;

/// Passes on requests that have the token, where one is wanted.
pub(super) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    match is_known(request.headers(), &app.sessions) {
        Ok(true) => next.run(request).await,
        Ok(false) => ApiError::token().into_response(),
        Err(error) => error.into_response(),
    }
}

/// Whether a request has what is wanted. Without the header it may come later, in a first frame; a wrong one is an error.
pub(super) fn is_known(headers: &HeaderMap, sessions: &Sessions) -> Result<bool, ApiError> {
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(!sessions.wants_token()) };
    let token = value.to_str().ok().and_then(|value| value.split_once(' '));
    match token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
        Some((_, token)) if sessions.accepts(token.trim()) => Ok(true),
        _ => Err(ApiError::token()),
    }
}
