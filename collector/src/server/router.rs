//! Which route answers which address.

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::{headers, host, routes};

/// The whole server as a service: [`super::run`] puts it on a socket, tests call it directly.
pub fn router() -> Router {
    Router::new()
        .route("/healthz", get(routes::health))
        .route("/sample.pickle", get(routes::sample))
        // `get` answers HEAD too, and any other method with 405 and the list of these two.
        .fallback_service(get(routes::page))
        .layer(from_fn(host::check))
        .layer(from_fn(headers::add))
}

/// The answer for an address that leads nowhere.
pub(super) fn not_found(uri: &Uri) -> Response {
    (StatusCode::NOT_FOUND, format!("Nothing is at {}. The page is at /.\n", uri.path())).into_response()
}
