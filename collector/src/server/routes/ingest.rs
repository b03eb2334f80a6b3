//! `/api/v1/ingest`: the socket of collectors, or requests with the same messages where sockets can't pass.

use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use tokio::time::{sleep, timeout};
use tokio_stream::StreamExt;
use tracing::{Instrument, Span};

use super::binary::Binary;
use crate::access::Caller;
use crate::ingest::{Conversation, IngestError};
use crate::server::error::{ApiError, ErrorJson};
use crate::server::refusal::refuse;
use crate::server::{App, ingest_socket, socket};

const FULL: &str = "This server has as many collectors as it allows. Try again later.";

/// Opens the WebSocket of a collector.
///
/// The socket carries messages of the wire protocol, a hello first. The token is sent in the header or in the hello.
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
    Extension(caller): Extension<Caller>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| ApiError::socket_required())?;
    let permit = app.sessions.collectors.clone().try_acquire_owned().map_err(|_| ApiError::busy(FULL))?;
    let span = Span::current();
    Ok(socket::bounded(upgrade)
        .on_upgrade(move |socket| ingest_socket::serve(socket, app, caller, permit).instrument(span)))
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
    let _permit = app.sessions.collectors.clone().try_acquire_owned().map_err(|_| ApiError::busy(FULL))?;
    let mut conversation = Conversation::new(app.sessions.clone(), caller);
    let mut answer = Vec::new();
    let time = Duration::from_secs(app.limits().body_seconds);
    let read = timeout(time, read(body, &mut conversation, &mut answer, app.limits().body_bytes)).await;
    // Complete batches are stored, whatever followed them.
    answer.extend(conversation.finish().await);
    // A collector that exceeds its quota of events waits for the answer before it sends more.
    if let Some(pause) = conversation.pause() {
        sleep(pause).await;
    }
    match read {
        Err(_) => {
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
    ClientGone,
    Refused(IngestError),
}

async fn read(body: Body, conversation: &mut Conversation, answer: &mut Vec<u8>, most: usize) -> Result<(), ReadError> {
    let mut bytes = 0_usize;
    let mut stream = body.into_data_stream();
    while let Some(data) = stream.next().await {
        let data = data.map_err(|_| ReadError::ClientGone)?;
        bytes = bytes.saturating_add(data.len());
        if bytes > most {
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
