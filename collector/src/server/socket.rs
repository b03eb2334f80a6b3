//! A WebSocket with limits on sizes and silence, pings, and an orderly end.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};
use trace::limits::{ServerLimits, WireLimits};
use wire::HEAD_BYTES;

/// Time that a client has to read why its socket ends.
const LINGER: Duration = Duration::from_secs(1);

/// Bytes that are read at once. Each socket holds as many.
const READ_BYTES: usize = 64 << 10;

/// Limits the messages of a socket, for as long as it is open: each holds at most one message of the wire. Without a token
/// in the request the client may be anybody, and a message holds at most `most` bytes.
pub(super) fn bounded(upgrade: WebSocketUpgrade, has_shown_token: bool, most: usize) -> WebSocketUpgrade {
    let whole = WireLimits::default().frame_bytes + HEAD_BYTES;
    let most = if has_shown_token { whole } else { most.min(whole) };
    upgrade.max_message_size(most).max_frame_size(most).read_buffer_size(READ_BYTES.min(most))
}

/// Resolves when the server stops.
pub(super) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stops| *stops).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A WebSocket that notices when its client has gone.
pub(super) struct Socket {
    socket: WebSocket,
    last_received: Instant,
    pings: Interval,
    /// The longest silence, and the longest time to send one message.
    idle: Duration,
}

/// What [`Socket::receive`] returns.
pub(super) enum Received {
    /// Bytes of the client's stream.
    Bytes(Bytes),
    /// A ping or a pong, in either direction.
    Control,
    /// The socket was closed, failed, or was silent for too long.
    Closed,
}

impl Socket {
    /// Wraps a socket that was just opened.
    pub(super) fn new(socket: WebSocket, limits: &ServerLimits) -> Self {
        let mut pings = interval(Duration::from_secs(limits.ping_seconds.max(1)));
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { socket, last_received: Instant::now(), pings, idle: Duration::from_secs(limits.idle_seconds) }
    }

    /// Waits for the client, and pings it meanwhile. Dropping the future loses nothing.
    pub(super) async fn receive(&mut self) -> Received {
        tokio::select! {
            message = self.socket.recv() => {
                self.last_received = Instant::now();
                match message {
                    Some(Ok(Message::Binary(bytes))) => Received::Bytes(bytes),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => Received::Control,
                    // The stream is binary: text is an error.
                    Some(Ok(Message::Text(_) | Message::Close(_)) | Err(_)) | None => Received::Closed,
                }
            }
            _ = self.pings.tick() => {
                if self.last_received.elapsed() > self.idle || !self.send_message(Message::Ping(Bytes::new())).await {
                    return Received::Closed;
                }
                Received::Control
            }
        }
    }

    /// Sends bytes. Returns `false` if the client has gone or does not read.
    pub(super) async fn send(&mut self, bytes: impl Into<Bytes>) -> bool {
        let bytes = bytes.into();
        bytes.is_empty() || self.send_message(Message::Binary(bytes)).await
    }

    async fn send_message(&mut self, message: Message) -> bool {
        matches!(timeout(self.idle, self.socket.send(message)).await, Ok(Ok(())))
    }

    /// Closes the socket. Discards what still arrives for a moment: closing with unread bytes would reset the
    /// connection, and the client would lose the last messages that were sent to it.
    pub(super) async fn close(mut self) {
        let _ = timeout(LINGER, async {
            if self.socket.send(Message::Close(None)).await.is_ok() {
                while let Some(Ok(_)) = self.socket.recv().await {}
            }
        })
        .await;
    }
}
