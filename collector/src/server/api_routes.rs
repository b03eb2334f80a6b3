//! The table of routes of the API.

use axum::extract::DefaultBodyLimit;
use axum::http::Method;
use axum::routing::{MethodRouter, get, post, put};
use trace::limits::{KEPT_BASELINE_BYTES, PASTED_BYTES};

use super::token::{Need, Needs};
use super::{App, routes};
use crate::access::Role;

/// A route of the API.
pub(super) struct Route {
    /// Its path.
    pub(super) path: &'static str,
    /// What each of its methods needs.
    pub(super) needs: Needs,
    pub(super) handlers: MethodRouter<App>,
}

impl Route {
    fn new(path: &'static str, needs: Needs, handlers: MethodRouter<App>) -> Self {
        Self { path, needs, handlers }
    }
}

/// The routes of the API.
pub(super) fn api_routes() -> Vec<Route> {
    use Method as M;
    use Need::{First, Manage, Nothing, Role as Token, Unless};
    use Role::{Admin, Ingest, Read, Share};
    use routes::shares;
    vec![
        Route::new("/api/v1/", &[(M::GET, Nothing)], get(routes::docs)),
        Route::new("/api/v1/openapi.json", &[(M::GET, Nothing)], get(routes::openapi)),
        Route::new("/api/v1/health/live", &[(M::GET, Nothing)], get(routes::health_live)),
        Route::new("/api/v1/health/ready", &[(M::GET, Nothing)], get(routes::health_ready)),
        Route::new(
            "/api/v1/ingest",
            &[(M::GET, First(Ingest)), (M::POST, First(Ingest))],
            get(routes::ingest_socket).post(routes::ingest_post),
        ),
        Route::new("/api/v1/sessions", &[(M::GET, Token(Read))], get(routes::list)),
        Route::new(
            "/api/v1/sessions/{id}",
            &[(M::GET, Token(Read)), (M::DELETE, Manage)],
            get(routes::one).delete(routes::delete),
        ),
        Route::new("/api/v1/sessions/{id}/stats", &[(M::GET, Token(Read))], get(routes::stats)),
        Route::new("/api/v1/sessions/{id}/trace", &[(M::GET, Token(Read))], get(routes::trace)),
        Route::new("/api/v1/sessions/{id}/live", &[(M::GET, First(Read))], get(routes::live)),
        Route::new("/api/v1/sessions/{id}/ask", &[(M::POST, Token(Read))], post(routes::ask)),
        Route::new("/api/v1/sessions/{id}/pin", &[(M::PUT, Manage)], put(routes::pin)),
        Route::new("/api/v1/files", &[(M::POST, Token(Admin))], post(routes::files::offer)),
        Route::new("/api/v1/files/{id}/{name}", &[(M::GET, Token(Read))], get(routes::files::file)),
        Route::new(
            "/api/v1/explain",
            &[(M::POST, Token(Read))],
            post(routes::explain).layer(DefaultBodyLimit::max(PASTED_BYTES)),
        ),
        Route::new("/api/v1/demo", &[(M::POST, Token(Ingest))], post(routes::demo)),
        Route::new("/api/v1/traces", &[(M::POST, Token(Share))], post(shares::upload::share_trace)),
        Route::new("/api/v1/traces/sharing", &[(M::GET, Token(Share))], get(shares::links::sharing)),
        Route::new("/api/v1/traces/uploads", &[(M::POST, Token(Share))], post(shares::uploads::begin_upload)),
        Route::new(
            "/api/v1/traces/uploads/{id}",
            &[(M::GET, Token(Share)), (M::PUT, Token(Share)), (M::DELETE, Token(Share))],
            get(shares::uploads::upload_progress)
                .put(shares::uploads::send_part)
                .delete(shares::uploads::cancel_upload),
        ),
        Route::new(
            "/api/v1/traces/uploads/{id}/finish",
            &[(M::POST, Token(Share))],
            post(shares::uploads::finish_upload),
        ),
        // A public link needs no token, and its delete token is enough to delete it.
        Route::new(
            "/api/v1/traces/{token}",
            &[(M::GET, Unless(Read)), (M::DELETE, Unless(Admin))],
            get(shares::links::link).delete(shares::links::delete_link),
        ),
        Route::new("/api/v1/traces/{token}/open", &[(M::POST, Unless(Read))], post(shares::links::open_link)),
        Route::new("/api/v1/traces/{token}/expiry", &[(M::PUT, Unless(Share))], put(shares::links::set_expiry)),
        Route::new("/api/v1/traces/{token}/trace", &[(M::GET, Unless(Read))], get(shares::trace::shared_trace)),
        Route::new("/api/v1/traces/{token}/picture.png", &[(M::GET, Unless(Read))], get(shares::picture::link_picture)),
        Route::new("/api/v1/baselines", &[(M::GET, Token(Share))], get(routes::baselines::list)),
        Route::new(
            "/api/v1/baselines/{name}",
            &[(M::GET, Token(Share)), (M::PUT, Token(Share)), (M::DELETE, Token(Share))],
            get(routes::baselines::one)
                .put(routes::baselines::keep)
                .delete(routes::baselines::delete)
                .layer(DefaultBodyLimit::max(KEPT_BASELINE_BYTES)),
        ),
        Route::new("/metrics", &[(M::GET, Token(Read))], get(routes::metrics)),
    ]
}
