//! The headers of every response: what the page may do, and who may look into it.

use axum::extract::Request;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::middleware::Next;
use axum::response::Response;

/// Nothing but what this server itself hands out runs, loads or connects: a trace can't leave the page by mistake.
/// `wasm-unsafe-eval` allows WebAssembly to be compiled and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; worker-src 'self'; \
    connect-src 'self'; img-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    object-src 'none'; frame-ancestors 'none'";

/// Each header and its value.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // Addresses hold the view's state: no other site has any business with it.
    (REFERRER_POLICY, "no-referrer"),
    // Cross-origin isolation: precise timers, and threads in WebAssembly once they are wanted.
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds the headers to whatever the routes answer.
pub(super) async fn add(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
