//! `/api/v1/sessions/{id}/live`: where viewers watch.

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::find;
use super::ingest::no_socket;
use crate::server::error::ApiError;
use crate::server::{App, socket, token, viewer};

/// A viewer's socket.
pub(crate) async fn live(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| no_socket())?;
    let is_known = token::is_known(&headers, &app.sessions)?;
    // Who has not shown the token is not told which sessions there are, but by the end of the socket.
    let session = find(&app, &id)?;
    let busy = || ApiError::busy("There are as many viewers as this server takes. Try again later.");
    let place = app.sessions.viewers.clone().try_acquire_owned().map_err(|_| busy())?;
    Ok(socket::bounded(upgrade).on_upgrade(move |socket| viewer::serve(socket, app, session, is_known, place)))
}
