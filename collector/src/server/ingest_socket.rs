//! The socket of a collector.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::WebSocket;
use tokio::time::sleep;

use super::App;
use super::connection_slots::ConnectionSlot;
use super::refusal::refuse;
use super::socket::{Received, Socket, stopped};
use crate::access::Caller;
use crate::ingest::{Conversation, IngestError, Outgoing};

/// Serves a collector until it disconnects. It keeps the slot of its connection until its hello was accepted.
pub(super) async fn serve(socket: WebSocket, app: App, caller: Caller, slot: Option<Arc<ConnectionSlot>>) {
    let mut socket = Socket::new(socket, app.limits());
    let mut conversation = Conversation::new(app.sessions.clone(), caller);
    match converse(&mut socket, &mut conversation, &app, slot.as_ref()).await {
        Ok(()) => tracing::debug!("collector disconnected"),
        Err(error) => {
            let message = refuse(&app.sessions, "collector", conversation.caller(), None, &error);
            socket.send(message.to_bytes()).await;
        }
    }
    // Everything received is stored by now, so the collector may disconnect.
    let _permit = conversation.into_permit();
    socket.close().await;
}

async fn converse(
    socket: &mut Socket,
    conversation: &mut Conversation,
    app: &App,
    slot: Option<&Arc<ConnectionSlot>>,
) -> Result<(), IngestError> {
    let mut stopping = app.sessions.stopping();
    let deadline = sleep(Duration::from_secs(app.limits().hello_seconds));
    tokio::pin!(deadline);
    loop {
        let pause = conversation.pause();
        tokio::select! {
            received = socket.receive(), if pause.is_none() => match received {
                Received::Closed => return Ok(()),
                Received::Control => {}
                Received::Bytes(bytes) => {
                    let mut answer = Vec::new();
                    let pushed = conversation.push(&bytes, &mut answer).await;
                    if conversation.is_open() && let Some(slot) = slot {
                        slot.give_up();
                    }
                    if !socket.send(answer).await {
                        return Ok(());
                    }
                    pushed?;
                }
            },
            // A collector that exceeds its quota of events is not read for a while, and waits.
            () = sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            news = conversation.next() => match news {
                Outgoing::Messages(messages) => {
                    if !socket.send(messages).await {
                        return Ok(());
                    }
                }
                Outgoing::Last(messages) => {
                    socket.send(messages.unwrap_or_default()).await;
                    return Ok(());
                }
            },
            () = &mut deadline, if !conversation.is_open() => {
                return Err(IngestError::Malformed("no hello arrived in time".to_owned()));
            }
            () = stopped(&mut stopping) => return Err(IngestError::Restart),
        }
    }
}
