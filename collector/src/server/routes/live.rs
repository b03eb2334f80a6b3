//! `/api/v1/sessions/{id}/live`: the socket of viewers.

use std::sync::Arc;

use axum::Extension;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use tracing::{Instrument, Span};

use super::find;
use crate::access::Caller;
use crate::server::connection_slots::ConnectionSlot;
use crate::server::error::{ApiError, ErrorJson};
use crate::server::{App, socket, viewer};

/// Opens the WebSocket of a viewer.
///
/// The socket carries messages of the wire protocol, a watch first. The token is sent in the header or in the watch. A client
/// that sends it in the watch learns only then whether there is such a session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/live",
    operation_id = "open_live_socket",
    params(("id" = String, Path, description = "The session's id: 26 characters of a-z and 2-7.")),
    responses(
        (status = 101, description = "The socket is open."),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 404, description = "There is no such session.", body = ErrorJson),
        (status = 426, description = "The request is not a WebSocket upgrade.", body = ErrorJson),
        (status = 503, description = "There are too many viewers.", body = ErrorJson),
    )
)]
pub(crate) async fn live(
    State(app): State<App>,
    Path(id): Path<String>,
    slot: Option<Extension<Arc<ConnectionSlot>>>,
    Extension(caller): Extension<Caller>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| ApiError::socket_required())?;
    // A stranger gets the same answers for every id.
    if matches!(caller.grant, Ok(Some(_))) {
        find(&app, &id)?;
    }
    if app.sessions.viewers.available_permits() == 0 {
        return Err(ApiError::busy("This server has as many viewers as it allows. Try again later."));
    }
    let span = Span::current();
    // Viewers send nothing but the watch, which is as small as a hello.
    let upgrade = socket::bounded(upgrade, false, app.limits().hello_bytes);
    let slot = slot.map(|Extension(slot)| slot);
    Ok(upgrade.on_upgrade(move |socket| viewer::serve(socket, app, id, caller, slot).instrument(span)))
}
