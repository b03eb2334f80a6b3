//! A collector's socket.

use std::time::Duration;

use axum::extract::ws::WebSocket;
use shared::wire::Message;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::App;
use super::socket::{Came, Line, stopped};
use crate::ingest::{Conversation, IngestError, Outgoing};

/// Serves a collector to its end. Its place is held as long.
pub(super) async fn serve(socket: WebSocket, app: App, is_known: bool, _place: OwnedSemaphorePermit) {
    let mut line = Line::new(socket, app.limits());
    let mut conversation = Conversation::new(app.sessions.clone(), is_known);
    if let Err(error) = converse(&mut line, &mut conversation, &app).await {
        let refused = error.refused();
        app.sessions.counters.refuse(refused.code);
        line.send(Message::Refused(refused).to_bytes()).await;
    }
    // What came is stored; who sent it may go.
    drop(conversation);
    line.close().await;
}

async fn converse(line: &mut Line, conversation: &mut Conversation, app: &App) -> Result<(), IngestError> {
    let mut stopping = app.sessions.stopping();
    let late = sleep(Duration::from_secs(app.limits().hello_seconds));
    tokio::pin!(late);
    loop {
        tokio::select! {
            came = line.recv() => match came {
                Came::Over => return Ok(()),
                Came::Nothing => {}
                Came::Bytes(bytes) => {
                    let mut answer = Vec::new();
                    let taken = conversation.push(&bytes, &mut answer).await;
                    if !line.send(answer).await {
                        return Ok(());
                    }
                    taken?;
                }
            },
            news = conversation.next() => match news {
                Outgoing::Messages(frames) => {
                    if !line.send(frames).await {
                        return Ok(());
                    }
                }
                Outgoing::Last(frames) => {
                    line.send(frames.unwrap_or_default()).await;
                    return Ok(());
                }
            },
            () = &mut late, if !conversation.is_open() => {
                return Err(IngestError::Malformed("no hello came in time".to_owned()));
            }
            () = stopped(&mut stopping) => return Err(IngestError::Restart),
        }
    }
}
