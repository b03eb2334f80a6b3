//! The router: the API, the page, and what every request passes.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Redirect;
use axum::routing::get;
use axum::{Extension, Router};

use super::api_routes::{Route, api_routes};
use super::error::ApiError;
use super::openapi::OPENAPI;
use super::token;
use super::{App, access_log, headers, host, proxies, routes};

/// Returns the whole server as a service: [`super::run`] serves it on a socket, tests call it directly.
pub fn router(app: App) -> Router {
    let add = |router: Router<App>, Route { path, needs, handlers }| {
        router.route(path, handlers.route_layer(from_fn_with_state((app.clone(), needs), token::check)))
    };
    api_routes()
        .into_iter()
        .fold(Router::new(), add)
        .method_not_allowed_fallback(no_such_method)
        .route("/api/v1", get(|| async { Redirect::permanent("/api/v1/") }))
        .route("/api/{*rest}", axum::routing::any(nowhere))
        .route("/healthz", get(routes::health))
        .route("/sample.pickle", get(routes::sample))
        .route("/offline.html", get(routes::offline))
        // `get` answers HEAD too, and any other method with 405 and the list of these two.
        .fallback_service(get(routes::page).with_state(app.clone()))
        .layer(Extension(routes::ApiDocument(&OPENAPI)))
        .layer(from_fn(host::check_origin))
        .layer(from_fn_with_state(Arc::clone(&app.hosts), host::check))
        .layer(from_fn_with_state(Arc::clone(&app.embedding), headers::add))
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
    use tower::ServiceExt;
    use trace::limits::ServerLimits;

    use super::super::token::Need;
    use super::*;
    use crate::bus::LocalBus;
    use crate::ingest::{Retention, Sessions};
    use crate::server::Hosts;
    use crate::store::SegmentStore;

    /// What a method of a route needs, if it has that method.
    fn need(path: &str, method: &Method) -> Option<Need> {
        let routes = api_routes();
        let needs = routes.iter().find(|route| route.path == path)?.needs;
        needs.iter().find(|(known, _)| known == method).map(|(_, need)| *need)
    }

    #[tokio::test]
    async fn the_description_has_every_route_and_no_other() {
        let limits = ServerLimits::default();
        let store = Arc::new(SegmentStore::in_memory(1 << 20));
        let sessions =
            Sessions::open(store, Arc::new(LocalBus::new(1)), limits, Retention::default(), Arc::default()).unwrap();
        let router = router(App::new(sessions, Hosts::new("127.0.0.1:7070".parse().unwrap(), &[])));
        let api: serde_json::Value = serde_json::from_str(&OPENAPI).unwrap();
        let described = api["paths"].as_object().unwrap();
        let paths: BTreeSet<&str> = api_routes().iter().map(|route| route.path).collect();
        assert_eq!(described.keys().map(String::as_str).collect::<BTreeSet<_>>(), paths);
        for (path, methods) in described {
            for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                let request = Request::builder()
                    .method(&method)
                    .uri(path.replace("{id}", "x").replace("{token}", "x").replace("{name}", "x"))
                    .header("host", "localhost");
                let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
                let is_described = methods.get(method.as_str().to_lowercase()).is_some();
                assert_eq!(response.status() != StatusCode::METHOD_NOT_ALLOWED, is_described, "{method} {path}");
                assert_eq!(need(path, &method).is_some(), is_described, "{method} {path} has no role in the table");
                if let Some(operation) = methods.get(method.as_str().to_lowercase()) {
                    let is_authenticated = matches!(need(path, &method), Some(Need::Role(_) | Need::Manage));
                    assert_eq!(operation["security"].is_array(), is_authenticated, "{method} {path}");
                }
            }
        }
    }
}
