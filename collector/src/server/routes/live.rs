//! `/api/v1/sessions/{id}/live`: the socket of viewers.

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use tracing::{Instrument, Span};

use super::find;
use super::ingest::socket_required;
use crate::server::error::ApiError;
use crate::server::{App, socket, token, viewer};

/// Opens the socket of a viewer.
pub(crate) async fn live(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| socket_required())?;
    let has_token = token::has_token(&headers, &app.sessions)?;
    let session = find(&app, &id)?;
    let busy = || ApiError::busy("This server has as many viewers as it allows. Try again later.");
    let permit = app.sessions.viewers.clone().try_acquire_owned().map_err(|_| busy())?;
    let span = Span::current();
    Ok(socket::bounded(upgrade)
        .on_upgrade(move |socket| viewer::serve(socket, app, session, has_token, permit).instrument(span)))
}
