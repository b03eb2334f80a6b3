//! The security headers of every response.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::middleware::Next;
use axum::response::Response;

use super::elsewhere;
use super::embedding::Embedding;
use super::peer::Encrypted;

/// The page runs, loads and connects to nothing but this server, so that a recording can't leave it by mistake.
/// `wasm-unsafe-eval` allows compiling WebAssembly, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; worker-src 'self'; \
    connect-src 'self'; img-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    object-src 'none'; frame-ancestors 'none'";
/// The parts of [`POLICY`] that a response may need otherwise.
const CONNECT: &str = "connect-src 'self'";
const ANCESTORS: &str = "frame-ancestors 'none'";

const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Each header and its value.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // URLs contain the view's state, which is no other site's business.
    (REFERRER_POLICY, "no-referrer"),
    // Cross-origin isolation: precise timers, and threads in WebAssembly for later.
    (OPENER, "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (RESOURCE, "same-origin"),
];

/// Makes browsers use TLS for this host during the next 30 days. It holds for every port of the host, so subdomains are
/// left out and the time is short.
const TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=2592000");

/// Whether a path belongs to the API or is that of the metrics: what they answer is for the client that asked, and for the
/// moment.
fn is_api(path: &str) -> bool {
    path.starts_with("/api/") || path == "/api" || path == "/metrics"
}

/// Returns the policy of a response if it differs from [`POLICY`].
///
/// A page whose address names a file of another server (`?url=`) may connect to that server too, and so may its workers,
/// which the page starts with the same parameter: a worker has the policy of its own script. To name that one origin is
/// stricter than a page that may always connect to any, and it holds even if the person says no: what the page has open can
/// be sent nowhere but to the site whose link was followed, and only by a script, of which there is none but the page's own.
/// An answer that redirects to another host is blocked.
fn policy(request: &Request, ancestors: Option<&str>) -> Option<HeaderValue> {
    let elsewhere = request.uri().query().filter(|_| !is_api(request.uri().path())).and_then(elsewhere::origin);
    let mut policy = POLICY.to_owned();
    if let Some(origin) = elsewhere {
        policy = policy.replace(CONNECT, &format!("{CONNECT} {origin}"));
    }
    if let Some(ancestors) = ancestors {
        policy = policy.replace(ANCESTORS, &format!("frame-ancestors {ancestors}"));
    }
    // Origins are in ASCII, so that it is always valid.
    HeaderValue::from_str(&policy).ok().filter(|_| policy != POLICY)
}

/// Adds the headers to every response.
pub(super) async fn add(State(embedding): State<Arc<Embedding>>, request: Request, next: Next) -> Response {
    let ancestors = embedding.ancestors(request.uri());
    let policy = policy(&request, ancestors.as_deref());
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
    if let Some(policy) = policy {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    if ancestors.is_some() {
        // The page that opened this one stays its opener, and sends it a trace. Of what the server has, such a page shows only
        // the shared trace whose link its address is.
        response.headers_mut().insert(OPENER, HeaderValue::from_static("unsafe-none"));
        // An isolated site may frame only what allows it; who may is in the policy.
        response.headers_mut().insert(RESOURCE, HeaderValue::from_static("cross-origin"));
    }
    response
}
