//! The table of routes.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Redirect;
use axum::routing::{MethodRouter, get, post, put};
use axum::{Extension, Router};

use super::error::ApiError;
use super::openapi::OPENAPI;
use super::{App, access_log, headers, host, proxies, routes, token};

/// The routes of the API that require the token in the request.
pub(super) fn authenticated() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/api/v1/sessions", get(routes::list)),
        ("/api/v1/sessions/{id}", get(routes::one).delete(routes::delete)),
        ("/api/v1/sessions/{id}/stats", get(routes::stats)),
        ("/api/v1/sessions/{id}/trace", get(routes::trace)),
        ("/api/v1/sessions/{id}/ask", post(routes::ask)),
        ("/api/v1/sessions/{id}/pin", put(routes::pin)),
        ("/api/v1/demo", post(routes::demo)),
        ("/metrics", get(routes::metrics)),
    ]
}

/// The routes that require no token, or accept it in the first message of a socket.
pub(super) fn public() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/api/v1/", get(routes::docs)),
        ("/api/v1/openapi.json", get(routes::openapi)),
        ("/api/v1/health/live", get(routes::health_live)),
        ("/api/v1/health/ready", get(routes::health_ready)),
        ("/api/v1/ingest", get(routes::ingest_socket).post(routes::ingest_post)),
        ("/api/v1/sessions/{id}/live", get(routes::live)),
    ]
}

/// Returns the whole server as a service: [`super::run`] serves it on a socket, tests call it directly.
pub fn router(app: App) -> Router {
    let add = |router: Router<App>, (path, route)| router.route(path, route);
    let authenticated =
        authenticated().into_iter().fold(Router::new(), add).route_layer(from_fn_with_state(app.clone(), token::check));
    public()
        .into_iter()
        .fold(authenticated, add)
        .method_not_allowed_fallback(no_such_method)
        .route("/api/v1", get(|| async { Redirect::permanent("/api/v1/") }))
        .route("/api/{*rest}", axum::routing::any(nowhere))
        .route("/healthz", get(routes::health))
        .route("/sample.pickle", get(routes::sample))
        // `get` answers HEAD too, and any other method with 405 and the list of these two.
        .fallback_service(get(routes::page))
        .layer(Extension(routes::ApiDocument(&OPENAPI)))
        .layer(from_fn(host::check_origin))
        .layer(from_fn_with_state(Arc::clone(&app.hosts), host::check))
        .layer(from_fn(headers::add))
        .layer(from_fn(access_log::record))
        .layer(from_fn_with_state(Arc::clone(&app.proxies), proxies::resolve))
        .with_state(app)
}

/// Answers a request for an unknown route of the API.
async fn nowhere() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "route", "There is no such route. /api/v1/ lists them.")
}

/// Answers a request with a method that its route does not have; the header `Allow` lists those that it has.
async fn no_such_method(method: Method) -> ApiError {
    let sentence = format!("{method} is not allowed here. /api/v1/ lists the routes.");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", sentence)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::body::Body;
    use axum::http::Request;
    use shared::limits::ServerLimits;
    use tower::ServiceExt;

    use super::*;
    use crate::bus::LocalBus;
    use crate::ingest::{Retention, Sessions};
    use crate::server::Hosts;
    use crate::store::SegmentStore;

    #[tokio::test]
    async fn the_description_has_every_route_and_no_other() {
        let limits = ServerLimits::default();
        let store = Arc::new(SegmentStore::in_memory(1 << 20));
        let sessions = Sessions::open(store, Arc::new(LocalBus::new(1)), limits, Retention::default(), None).unwrap();
        let router = router(App::new(sessions, Hosts::new("127.0.0.1:7070".parse().unwrap(), &[])));
        let api: serde_json::Value = serde_json::from_str(&OPENAPI).unwrap();
        let described = api["paths"].as_object().unwrap();
        let paths: BTreeSet<&str> = authenticated().iter().chain(&public()).map(|(path, _)| *path).collect();
        assert_eq!(described.keys().map(String::as_str).collect::<BTreeSet<_>>(), paths);
        for (path, methods) in described {
            for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                let request =
                    Request::builder().method(&method).uri(path.replace("{id}", "x")).header("host", "localhost");
                let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
                let is_described = methods.get(method.as_str().to_lowercase()).is_some();
                assert_eq!(response.status() != StatusCode::METHOD_NOT_ALLOWED, is_described, "{method} {path}");
                if let Some(operation) = methods.get(method.as_str().to_lowercase()) {
                    let is_authenticated = authenticated().iter().any(|(authenticated, _)| path == authenticated);
                    assert_eq!(operation["security"].is_array(), is_authenticated, "{method} {path}");
                }
            }
        }
    }
}
