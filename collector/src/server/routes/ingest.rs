//! `/api/v1/ingest`: where collectors send, by socket or, where those can't pass, in requests.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use shared::wire::Message;
use tokio::time::timeout;

use crate::ingest::{Conversation, IngestError};
use crate::server::error::ApiError;
use crate::server::{App, collector, socket, token};

const FULL: &str = "There are as many collectors as this server takes. Try again later.";

/// A collector's socket.
pub(crate) async fn socket(
    State(app): State<App>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| no_socket())?;
    let is_known = token::is_known(&headers, &app.sessions)?;
    let place = app.sessions.collectors.clone().try_acquire_owned().map_err(|_| ApiError::busy(FULL))?;
    Ok(socket::bounded(upgrade).on_upgrade(move |socket| collector::serve(socket, app, is_known, place)))
}

/// What an address answers that is for sockets.
pub(super) fn no_socket() -> ApiError {
    ApiError::new(StatusCode::UPGRADE_REQUIRED, "socket", "This address is for WebSockets, version 13.")
}

/// Frames in the body, frames in the answer.
pub(crate) async fn post(State(app): State<App>, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let is_known = token::is_known(&headers, &app.sessions)?;
    let _place = app.sessions.collectors.clone().try_acquire_owned().map_err(|_| ApiError::busy(FULL))?;
    let mut conversation = Conversation::new(app.sessions.clone(), is_known);
    let mut answer = Vec::new();
    let time = Duration::from_secs(app.limits().body_seconds);
    let took = timeout(time, take(body, &mut conversation, &mut answer, app.limits().body_bytes)).await;
    // What came whole is stored, whatever came after it.
    answer.extend(conversation.finish().await);
    let refused = match took {
        Err(_) => Some(ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow", "The body did not come in time.")),
        Ok(Err(Fault::TooLong)) => {
            let sentence = "The body is too long: send fewer batches at once.";
            Some(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "full", sentence))
        }
        Ok(Err(Fault::Refused(error))) => {
            app.sessions.counters.refuse(error.code());
            Message::Refused(error.refused()).encode(&mut answer);
            None
        }
        Ok(Err(Fault::Gone) | Ok(())) => None,
    };
    if let Some(refused) = refused {
        return Err(refused);
    }
    Ok(([(CONTENT_TYPE, "application/octet-stream")], answer).into_response())
}

/// Why a body was not read to its end.
enum Fault {
    TooLong,
    Gone,
    Refused(IngestError),
}

async fn take(mut body: Body, conversation: &mut Conversation, answer: &mut Vec<u8>, most: usize) -> Result<(), Fault> {
    let mut bytes = 0_usize;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame.map_err(|_| Fault::Gone)?.into_data() else { continue };
        bytes = bytes.saturating_add(data.len());
        if bytes > most {
            return Err(Fault::TooLong);
        }
        conversation.push(&data, answer).await.map_err(Fault::Refused)?;
    }
    if conversation.is_open() {
        Ok(())
    } else {
        Err(Fault::Refused(IngestError::Malformed("there is no hello".to_owned())))
    }
}
