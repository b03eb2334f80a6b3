//! One log line for each request.
//!
//! A line holds what helps to operate the server, and nothing that a client could use to write into the log or that a
//! log must not keep: the matched route instead of the path, no query, no header. The path is added at the level `debug`.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tracing::{Instrument, Level, Span, error_span};
use wire::is_link_token;

use super::local_files;

/// The target of a request's line, as filters name it.
const TARGET: &str = "vramscope::request";
/// The response header that carries the request's number, so that a person can find its line.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Routes that are polled: their lines are of interest only when something is wrong.
const POLLED: [&str; 4] = ["/healthz", "/api/v1/health/live", "/api/v1/health/ready", "/metrics"];

/// The prefix of a link's token in a path of the page.
pub(super) const LINK: &str = "s-";

/// The number of the next request.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The fields that a failed request adds to its line. Routes put it into the extensions of their response.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The error's code, as the response has it.
    pub(super) code: &'static str,
    /// The error and its causes, for failures of the server.
    pub(super) cause: Option<String>,
}

/// Forwards a request, and logs it when the last byte of its response was sent.
pub(super) async fn record(request: Request, next: Next) -> Response {
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    // Of the highest level, so that every event within the request carries the number, whatever the filter.
    let span = error_span!("request", id);
    let mut line = Line {
        span: span.clone(),
        begun: Instant::now(),
        method: request.method().clone(),
        route: request.extensions().get::<MatchedPath>().cloned(),
        path: tracing::enabled!(target: TARGET, Level::DEBUG).then(|| without_tokens(request.uri().path())),
        status: StatusCode::OK,
        failure: None,
        bytes: 0,
        length: None,
        is_complete: false,
    };
    let mut response = next.run(request).instrument(span).await;
    line.length = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    response.headers_mut().insert(REQUEST_ID, HeaderValue::from(id));
    line.status = response.status();
    line.failure = response.extensions_mut().remove();
    // hyper sends no body in answer to HEAD, and polls none that is empty.
    line.is_complete = line.method == Method::HEAD || response.body().is_end_stream();
    response.map(|body| Body::new(LoggedBody { body, line }))
}

/// Returns a path without the tokens of links and the ids of local files in it, which would open them.
fn without_tokens(path: &str) -> String {
    let shown = |part: &str| {
        if local_files::is_id(part) {
            return "ID".to_owned();
        }
        let (prefix, token) = part.split_at(part.len().min(if part.starts_with(LINK) { LINK.len() } else { 0 }));
        if is_link_token(token) { format!("{prefix}TOKEN") } else { part.to_owned() }
    };
    path.split('/').map(shown).collect::<Vec<_>>().join("/")
}

/// The log line of one request, written when it is dropped.
#[derive(Debug)]
struct Line {
    span: Span,
    begun: Instant,
    method: Method,
    route: Option<MatchedPath>,
    path: Option<String>,
    status: StatusCode,
    failure: Option<Failure>,
    bytes: u64,
    /// The announced bytes of the body. hyper doesn't ask for more once it has them.
    length: Option<u64>,
    /// Whether the whole body was handed to the connection.
    is_complete: bool,
}

impl Line {
    fn level(&self) -> Level {
        let is_quiet = self.route.as_ref().is_none_or(|route| POLLED.contains(&route.as_str()));
        match self.status {
            // A limit, and not a fault.
            StatusCode::SERVICE_UNAVAILABLE => Level::WARN,
            status if status.is_server_error() => Level::ERROR,
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::PAYLOAD_TOO_LARGE => Level::WARN,
            _ if is_quiet => Level::DEBUG,
            _ => Level::INFO,
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        macro_rules! event {
            ($level:expr) => {
                tracing::event!(
                    target: TARGET,
                    parent: &self.span,
                    $level,
                    method = %self.method,
                    route = self.route.as_ref().map_or("(page)", MatchedPath::as_str),
                    path = self.path.as_deref(),
                    status = self.status.as_u16(),
                    duration_ms = self.begun.elapsed().as_micros() as f64 / 1e3,
                    bytes = self.bytes,
                    aborted = (!self.is_complete).then_some(true),
                    code = self.failure.as_ref().map(|failure| failure.code),
                    error = self.failure.as_ref().and_then(|failure| failure.cause.as_deref()),
                    "request"
                )
            };
        }
        // The level of an event is part of its static description.
        match self.level() {
            Level::ERROR => event!(Level::ERROR),
            Level::WARN => event!(Level::WARN),
            Level::INFO => event!(Level::INFO),
            _ => event!(Level::DEBUG),
        }
    }
}

/// A response body that counts its bytes for the log.
#[derive(Debug)]
struct LoggedBody {
    body: Body,
    line: Line,
}

impl HttpBody for LoggedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.line.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                self.line.is_complete = self.body.is_end_stream() || self.line.length == Some(self.line.bytes);
            }
            Poll::Ready(None) => self.line.is_complete = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_the_log_opens_nothing() {
        let (id, token) = ("0a".repeat(32), "a".repeat(39));
        for (path, want) in [
            (format!("/api/v1/files/{id}/job.pickle"), "/api/v1/files/ID/job.pickle"),
            (format!("/api/v1/traces/{token}/trace"), "/api/v1/traces/TOKEN/trace"),
            (format!("/s-{token}"), "/s-TOKEN"),
            ("/api/v1/sessions/abc".to_owned(), "/api/v1/sessions/abc"),
        ] {
            assert_eq!(without_tokens(&path), want);
        }
    }
}
