//! What all sockets have in common: pings, silence, an end.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use shared::limits::{ServerLimits, WireLimits};
use shared::wire::HEAD_BYTES;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

/// Time that the other side has to read why a socket ends.
const LINGER: Duration = Duration::from_secs(1);

/// An upgrade with our bounds: one frame of the wire a message, at most.
pub(super) fn bounded(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    let most = WireLimits::default().frame_bytes + HEAD_BYTES;
    upgrade.max_message_size(most).max_frame_size(most)
}

/// Resolves when the server stops.
pub(super) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stops| *stops).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A socket, and when it was heard of.
pub(super) struct Line {
    socket: WebSocket,
    heard: Instant,
    pings: Interval,
    idle: Duration,
}

/// What comes over a line.
pub(super) enum Came {
    /// Bytes of the stream.
    Bytes(Bytes),
    /// Nothing that counts.
    Nothing,
    /// It is over: closed, broken, or silent for too long.
    Over,
}

impl Line {
    pub(super) fn new(socket: WebSocket, limits: &ServerLimits) -> Self {
        let mut pings = interval(Duration::from_secs(limits.ping_seconds.max(1)));
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { socket, heard: Instant::now(), pings, idle: Duration::from_secs(limits.idle_seconds) }
    }

    /// Waits for something, and pings meanwhile. Dropping the future loses nothing.
    pub(super) async fn recv(&mut self) -> Came {
        tokio::select! {
            message = self.socket.recv() => {
                self.heard = Instant::now();
                match message {
                    Some(Ok(Message::Binary(bytes))) => Came::Bytes(bytes),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => Came::Nothing,
                    // The stream is bytes: text is no part of it.
                    Some(Ok(Message::Text(_) | Message::Close(_)) | Err(_)) | None => Came::Over,
                }
            }
            _ = self.pings.tick() => {
                if self.heard.elapsed() > self.idle || !self.put(Message::Ping(Bytes::new())).await {
                    return Came::Over;
                }
                Came::Nothing
            }
        }
    }

    /// Sends bytes; `false` where the other side has gone or takes nothing.
    pub(super) async fn send(&mut self, bytes: impl Into<Bytes>) -> bool {
        let bytes = bytes.into();
        bytes.is_empty() || self.put(Message::Binary(bytes)).await
    }

    async fn put(&mut self, message: Message) -> bool {
        matches!(timeout(self.idle, self.socket.send(message)).await, Ok(Ok(())))
    }

    /// Ends it. What still comes is thrown away for a moment: closing over unread bytes would take back what was said.
    pub(super) async fn close(mut self) {
        let _ = timeout(LINGER, async {
            if self.socket.send(Message::Close(None)).await.is_ok() {
                while let Some(Ok(_)) = self.socket.recv().await {}
            }
        })
        .await;
    }
}
