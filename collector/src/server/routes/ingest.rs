//! `/api/v1/ingest`: the socket of collectors, or requests with the same messages where sockets can't pass.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use shared::wire::Message;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tracing::{Instrument, Span};

use crate::ingest::{Conversation, IngestError, word};
use crate::server::error::ApiError;
use crate::server::{App, ingest_socket, socket, token};

const FULL: &str = "This server has as many collectors as it allows. Try again later.";

/// Opens the socket of a collector.
pub(crate) async fn ingest_socket(
    State(app): State<App>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| socket_required())?;
    let has_token = token::has_token(&headers, &app.sessions)?;
    let permit = app.sessions.collectors.clone().try_acquire_owned().map_err(|_| ApiError::busy(FULL))?;
    let span = Span::current();
    Ok(socket::bounded(upgrade)
        .on_upgrade(move |socket| ingest_socket::serve(socket, app, has_token, permit).instrument(span)))
}

/// 426: the request is not a WebSocket upgrade.
pub(super) fn socket_required() -> ApiError {
    ApiError::new(StatusCode::UPGRADE_REQUIRED, "socket", "This route requires a WebSocket, version 13.")
}

/// Reads messages from the body, and answers with messages.
pub(crate) async fn ingest_post(State(app): State<App>, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let has_token = token::has_token(&headers, &app.sessions)?;
    let _permit = app.sessions.collectors.clone().try_acquire_owned().map_err(|_| ApiError::busy(FULL))?;
    let mut conversation = Conversation::new(app.sessions.clone(), has_token);
    let mut answer = Vec::new();
    let time = Duration::from_secs(app.limits().body_seconds);
    let read = timeout(time, read(body, &mut conversation, &mut answer, app.limits().body_bytes)).await;
    // Complete batches are stored, whatever followed them.
    answer.extend(conversation.finish().await);
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
            let refused = error.refused();
            tracing::warn!(code = word(refused.code), error = &*refused.message, "collector refused");
            app.sessions.counters.refuse(refused.code);
            Message::Refused(refused).encode(&mut answer);
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
