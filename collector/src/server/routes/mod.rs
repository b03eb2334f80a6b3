//! One file for each route.

pub(super) mod ask;
pub(super) mod baselines;
mod binary;
pub(super) mod demo;
pub(super) mod docs;
pub(super) mod explain;
pub(super) mod files;
pub(super) mod health;
pub(super) mod ingest;
mod link_page;
pub(super) mod live;
pub(super) mod metrics;
mod metrics_writer;
mod offline;
mod page;
pub(super) mod pin;
mod sample;
mod session_gauges;
pub(super) mod sessions;
pub(super) mod shares;
pub(super) mod stats;
pub(super) mod trace;

pub(super) use ask::ask;
pub(super) use demo::demo;
pub(super) use docs::{ApiDocument, docs, openapi};
pub(super) use explain::explain;
pub(super) use health::{health, live as health_live, ready as health_ready};
pub(super) use ingest::{ingest_post, ingest_socket};
pub(super) use live::live;
pub(super) use metrics::metrics;
pub(super) use offline::offline;
pub(super) use page::page;
pub(super) use pin::pin;
pub(super) use sample::sample;
pub(super) use sessions::{delete, list, one};
pub(super) use stats::stats;
pub(super) use trace::trace;

use std::sync::Arc;

use tracing::Span;

use super::App;
use super::error::ApiError;
use crate::ingest::Session;

/// Returns the session with an id, or the response for an unknown one.
fn find(app: &App, id: &str) -> Result<Arc<Session>, ApiError> {
    app.sessions.get(id).ok_or_else(ApiError::no_session)
}

/// Runs what waits for the disk on a thread that may wait.
async fn blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let span = Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(run)).await.map_err(ApiError::internal)
}
