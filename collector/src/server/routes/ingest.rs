//! `/api/v1/ingest`: the socket of collectors, or requests with the same messages where sockets can't pass.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_stream::StreamExt;
use tracing::{Instrument, Span};

use super::binary::Binary;
use crate::access::Caller;
use crate::ingest::{Conversation, IngestError};
use crate::server::connection_slots::ConnectionSlot;
use crate::server::error::{ApiError, ErrorJson};
use crate::server::refusal::refuse;
use crate::server::request_body::is_too_slow;
use crate::server::{App, ingest_socket, socket};

const FULL: &str = "This server has as many collectors as it allows. Try again later.";

/// Opens the WebSocket of a collector.
///
/// The socket carries messages of the wire protocol, a hello first. The token is sent in the header or in the hello. Without
/// a token in the header, a WebSocket message holds at most 256 KiB; a message of the wire protocol may span several.
#[utoipa::path(
    get,
    path = "/api/v1/ingest",
    operation_id = "open_ingest_socket",
    responses(
        (status = 101, description = "The socket is open."),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 426, description = "The request is not a WebSocket upgrade.", body = ErrorJson),
        (status = 503, description = "There are too many collectors.", body = ErrorJson),
    )
)]
pub(crate) async fn ingest_socket(
    State(app): State<App>,
    slot: Option<Extension<Arc<ConnectionSlot>>>,
    Extension(caller): Extension<Caller>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| ApiError::socket_required())?;
    check_free(&app)?;
    let span = Span::current();
    let has_shown_token = app.sessions.access().wants_token() && matches!(caller.grant, Ok(Some(_)));
    let upgrade = socket::bounded(upgrade, has_shown_token, app.limits().socket_bytes);
    let slot = slot.map(|Extension(slot)| slot);
    Ok(upgrade.on_upgrade(move |socket| ingest_socket::serve(socket, app, caller, slot).instrument(span)))
}

/// Fails if no collector could be admitted now. A place is taken when the hello is accepted.
fn check_free(app: &App) -> Result<(), ApiError> {
    if app.sessions.collectors.available_permits() > 0 { Ok(()) } else { Err(ApiError::busy(FULL)) }
}

/// Sends messages of a collector where WebSockets can't pass.
///
/// The bodies of request and response carry messages of the wire protocol. Each request begins with a hello.
#[utoipa::path(
    post,
    path = "/api/v1/ingest",
    operation_id = "post_ingest",
    request_body(content = inline(Binary), content_type = "application/octet-stream"),
    responses(
        (
            status = 200,
            description = "Welcome, the last acknowledgement, questions to the collector, and a refusal if there is one.",
            content_type = "application/octet-stream",
            body = inline(Binary)
        ),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 408, description = "The body did not arrive in time.", body = ErrorJson),
        (status = 413, description = "The body is too long.", body = ErrorJson),
        (status = 503, description = "There are too many collectors.", body = ErrorJson),
    )
)]
pub(crate) async fn ingest_post(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, ApiError> {
    check_free(&app)?;
    let mut conversation = Conversation::new(app.sessions.clone(), caller).of_request();
    let mut answer = Vec::new();
    let time = Duration::from_secs(app.limits().body_seconds);
    let read = timeout(time, read(body, &mut conversation, &mut answer, &app)).await;
    // Complete batches are stored, whatever followed them.
    answer.extend(conversation.finish().await);
    // A collector that exceeds its quota of events waits for the answer before it sends more.
    if let Some(pause) = conversation.pause() {
        sleep(pause).await;
    }
    match read {
        Err(_) | Ok(Err(ReadError::TooSlow)) => {
            let message = "The body did not arrive in time.";
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow", message));
        }
        Ok(Err(ReadError::TooLong)) => {
            let message = "The body is too long. Send fewer batches at once.";
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "full", message));
        }
        Ok(Err(ReadError::Refused(error))) => {
            refuse(&app.sessions, "collector", conversation.caller(), None, &error).encode(&mut answer);
        }
        Ok(Err(ReadError::ClientGone) | Ok(())) => {}
    }
    Ok(([(CONTENT_TYPE, "application/octet-stream")], answer).into_response())
}

/// Why a body was not read to its end.
enum ReadError {
    TooLong,
    TooSlow,
    ClientGone,
    Refused(IngestError),
}

async fn read(body: Body, conversation: &mut Conversation, answer: &mut Vec<u8>, app: &App) -> Result<(), ReadError> {
    let hello_end = Instant::now() + Duration::from_secs(app.limits().hello_seconds);
    let mut bytes = 0_usize;
    let mut stream = body.into_data_stream();
    loop {
        let next = if conversation.is_open() {
            stream.next().await
        } else {
            timeout_at(hello_end, stream.next()).await.map_err(|_| ReadError::TooSlow)?
        };
        let Some(data) = next else { break };
        let data =
            data.map_err(|error| if is_too_slow(&error) { ReadError::TooSlow } else { ReadError::ClientGone })?;
        bytes = bytes.saturating_add(data.len());
        if bytes > app.limits().body_bytes {
            return Err(ReadError::TooLong);
        }
        conversation.push(&data, answer).await.map_err(ReadError::Refused)?;
    }
    if conversation.is_open() {
        Ok(())
    } else {
        Err(ReadError::Refused(IngestError::Malformed("the body has no hello".to_owned())))
    }
}
