//! One file a route.

mod ask;
mod demo;
mod docs;
mod health;
mod ingest;
mod live;
mod metrics;
mod page;
mod sample;
mod sessions;
mod stats;
mod trace;

pub(super) use ask::ask;
pub(super) use demo::demo;
#[cfg(test)]
pub(super) use docs::OPENAPI;
pub(super) use docs::{docs, openapi};
pub(super) use health::{health, live as alive, ready};
pub(super) use ingest::{post as ingest_post, socket as ingest_socket};
pub(super) use live::live;
pub(super) use metrics::metrics;
pub(super) use page::page;
pub(super) use sample::sample;
pub(super) use sessions::{delete, list, one};
pub(super) use stats::stats;
pub(super) use trace::trace;

use std::sync::Arc;

use super::App;
use super::error::ApiError;
use crate::ingest::Session;

/// The session that an address names.
fn find(app: &App, id: &str) -> Result<Arc<Session>, ApiError> {
    app.sessions.get(id).ok_or_else(ApiError::no_session)
}

/// Does what waits for the disk on a thread that may.
async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let failed = |_| {
        ApiError::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "internal", "The server failed at this request.")
    };
    tokio::task::spawn_blocking(act).await.map_err(failed)
}
