//! Which route answers which address.

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get, post};

use super::{App, error::ApiError, headers, host, routes, token};

/// The addresses of the API that want the token in the request.
pub(super) fn guarded() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/api/v1/sessions", get(routes::list)),
        ("/api/v1/sessions/{id}", get(routes::one).delete(routes::delete)),
        ("/api/v1/sessions/{id}/stats", get(routes::stats)),
        ("/api/v1/sessions/{id}/trace", get(routes::trace)),
        ("/api/v1/sessions/{id}/ask", post(routes::ask)),
        ("/api/v1/demo", post(routes::demo)),
        ("/metrics", get(routes::metrics)),
    ]
}

/// Those that want none, or hear it in the first frame.
pub(super) fn open() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/api/v1/", get(routes::docs)),
        ("/api/v1/openapi.json", get(routes::openapi)),
        ("/api/v1/health/live", get(routes::alive)),
        ("/api/v1/health/ready", get(routes::ready)),
        ("/api/v1/ingest", get(routes::ingest_socket).post(routes::ingest_post)),
        ("/api/v1/sessions/{id}/live", get(routes::live)),
    ]
}

/// The whole server as a service: [`super::run`] puts it on a socket, tests call it directly.
pub fn router(app: App) -> Router {
    let add = |router: Router<App>, (path, route)| router.route(path, route);
    let guarded =
        guarded().into_iter().fold(Router::new(), add).route_layer(from_fn_with_state(app.clone(), token::check));
    open()
        .into_iter()
        .fold(guarded, add)
        .method_not_allowed_fallback(no_such_method)
        .route("/api/v1", get(|| async { Redirect::permanent("/api/v1/") }))
        .route("/api/{*rest}", axum::routing::any(nowhere))
        .route("/healthz", get(routes::health))
        .route("/sample.pickle", get(routes::sample))
        // `get` answers HEAD too, and any other method with 405 and the list of these two.
        .fallback_service(get(routes::page))
        .layer(from_fn(host::check_origin))
        .layer(from_fn_with_state(app.clone(), host::check))
        .layer(from_fn(headers::add))
        .with_state(app)
}

/// The answer for an address of the API that leads nowhere.
async fn nowhere() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "route", "Nothing is here. /api/v1/ lists what is.")
}

/// The answer for a method that an address doesn't take; the header `Allow` lists those that it does.
async fn no_such_method(method: Method) -> ApiError {
    let sentence = format!("{method} is not taken here. /api/v1/ lists what is.");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", sentence)
}

/// The answer for an address that leads nowhere.
pub(super) fn not_found(uri: &Uri) -> Response {
    (StatusCode::NOT_FOUND, format!("Nothing is at {}. The page is at /.\n", uri.path())).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use axum::body::Body;
    use axum::http::Request;
    use shared::limits::ServerLimits;
    use tower::ServiceExt;

    use super::*;
    use crate::bus::LocalBus;
    use crate::ingest::{Retention, Sessions};
    use crate::server::Hosts;
    use crate::store::MemoryStore;

    #[tokio::test]
    async fn the_description_has_every_route_and_no_other() {
        let limits = ServerLimits::default();
        let store = Arc::new(MemoryStore::new(1 << 20));
        let sessions = Sessions::open(store, Arc::new(LocalBus::new(1)), limits, Retention::default(), None).unwrap();
        let router = router(App::new(sessions, Hosts::new("127.0.0.1:7070".parse().unwrap(), &[])));
        let api: serde_json::Value = serde_json::from_str(routes::OPENAPI).unwrap();
        let described = api["paths"].as_object().unwrap();
        let paths: BTreeSet<&str> = guarded().iter().chain(&open()).map(|(path, _)| *path).collect();
        assert_eq!(described.keys().map(String::as_str).collect::<BTreeSet<_>>(), paths);
        for (path, methods) in described {
            for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                let request =
                    Request::builder().method(&method).uri(path.replace("{id}", "x")).header("host", "localhost");
                let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
                let is_described = methods.get(method.as_str().to_lowercase()).is_some();
                assert_eq!(response.status() != StatusCode::METHOD_NOT_ALLOWED, is_described, "{method} {path}");
            }
        }
    }
}
