//! The security headers of every response.

use axum::extract::Request;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::middleware::Next;
use axum::response::Response;

use super::peer::Encrypted;

/// The page runs, loads and connects to nothing but this server, so that a recording can't leave it by mistake.
/// `wasm-unsafe-eval` allows compiling WebAssembly, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; worker-src 'self'; \
    connect-src 'self'; img-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    object-src 'none'; frame-ancestors 'none'";

/// Each header and its value.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // URLs contain the view's state, which is no other site's business.
    (REFERRER_POLICY, "no-referrer"),
    // Cross-origin isolation: precise timers, and threads in WebAssembly for later.
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Makes browsers use TLS for this host during the next 30 days. It holds for every port of the host, so subdomains are
/// left out and the time is short.
const TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=2592000");

/// Whether a path belongs to the API or is that of the metrics: what they answer is for the client that asked, and for the
/// moment.
fn is_api(path: &str) -> bool {
    path.starts_with("/api/") || path == "/api" || path == "/metrics"
}

/// Adds the headers to every response.
pub(super) async fn add(request: Request, next: Next) -> Response {
    // Behind a proxy, the policy of the public name is the proxy's.
    let is_encrypted = request.extensions().get::<Encrypted>().is_some();
    let is_api = is_api(request.uri().path());
    let mut response = next.run(request).await;
    if is_encrypted {
        response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, TRANSPORT);
    }
    if is_api {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
