//! The state that the recorder's output, the sender and the handle share.

use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wire::{Ack, Ask, Message, Refused, Welcome};

use super::queue::Queue;
use super::stats::{Cause, PublisherStats};

/// The publisher's state behind a lock, and a condition variable for its changes. The lock is only held for moments,
/// never while something is sent.
pub(super) struct SharedState {
    state: Mutex<PublisherState>,
    changed: Condvar,
    /// The process that started the publisher. The child of a fork has its memory but none of its threads.
    pub(super) process: u32,
}

/// The publisher's state.
pub(super) struct PublisherState {
    pub(super) queue: Queue,
    /// The payload of the recording's header chunk; empty until the recorder has written it.
    pub(super) header: Vec<u8>,
    pub(super) connection: ConnectionState,
    /// The deadline for delivery. Once it is set, the recorder writes nothing more.
    pub(super) end: Option<Instant>,
    /// The sender's thread has ended.
    pub(super) is_done: bool,
    /// The server has acknowledged the end of the session.
    pub(super) is_ended: bool,
    /// Why nothing can be sent any more.
    pub(super) failure: Option<String>,
    /// The latest error of an attempt that will be repeated.
    pub(super) trouble: Option<String>,
    /// What the latest error is about.
    pub(super) cause: Cause,
    pub(super) connections: u64,
    /// Connections that failed, or could not be made.
    pub(super) failures: u64,
    /// Somebody waits for a delivery, so the next connection is not delayed.
    pub(super) is_urgent: bool,
    pub(super) bytes: u64,
    pub(super) is_post: bool,
    asks: SyncSender<Ask>,
}

/// The present connection, as its two threads see it.
#[derive(Default)]
pub(super) struct ConnectionState {
    /// Counts connections. A reader of an earlier connection compares it and leaves the state alone.
    pub(super) generation: u64,
    /// The server has accepted the hello.
    pub(super) is_welcome: bool,
    /// The server has acknowledged something new.
    pub(super) has_progress: bool,
    /// Why the connection ended, if it has.
    pub(super) closed: Option<String>,
    pub(super) refused: Option<Refused>,
    /// The content of a ping that is to be answered.
    pub(super) ping: Option<Vec<u8>>,
    /// Since when an answer of the server is due.
    pub(super) awaiting_since: Option<Instant>,
    /// When something was last sent or received.
    pub(super) last_activity: Option<Instant>,
    /// The goodbye was sent.
    pub(super) is_goodbye: bool,
    /// A clone of the socket, to shut the connection down from another thread.
    pub(super) socket: Option<TcpStream>,
}

impl SharedState {
    pub(super) fn new(queue: Queue, asks: SyncSender<Ask>) -> Self {
        let state = PublisherState {
            queue,
            header: Vec::new(),
            connection: ConnectionState::default(),
            end: None,
            is_done: false,
            is_ended: false,
            failure: None,
            trouble: None,
            cause: Cause::default(),
            connections: 0,
            failures: 0,
            is_urgent: false,
            bytes: 0,
            is_post: false,
            asks,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), process: std::process::id() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, PublisherState> {
        // Every change under the lock is complete, so the state is usable after a thread has panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this process is the child of a fork. There, the lock may be held for ever by a thread that does
    /// not exist.
    pub(super) fn is_forked_child(&self) -> bool {
        self.process != std::process::id()
    }

    /// Wakes all threads that wait for a change.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits for a change, at most `timeout`.
    pub(super) fn wait<'a>(
        &self,
        state: MutexGuard<'a, PublisherState>,
        timeout: Duration,
    ) -> MutexGuard<'a, PublisherState> {
        self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until `condition` holds, at most until `end`. Returns whether it holds.
    pub(super) fn wait_until(&self, end: Instant, condition: impl Fn(&PublisherState) -> bool) -> bool {
        let mut state = self.lock();
        while !condition(&state) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.wait(state, left);
        }
        true
    }
}

impl PublisherState {
    /// Returns whether the deadline for delivery has passed.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Begins a connection and returns its generation.
    pub(super) fn begin_connection(&mut self, socket: Option<TcpStream>) -> u64 {
        let generation = self.connection.generation + 1;
        let now = Some(Instant::now());
        // The server has to answer the hello.
        self.connection = ConnectionState {
            generation,
            socket,
            awaiting_since: now,
            last_activity: now,
            ..ConnectionState::default()
        };
        self.connections += 1;
        generation
    }

    /// Shuts the connection down, which ends every call that is blocked on it.
    pub(super) fn shut_down(&mut self) {
        if let Some(socket) = self.connection.socket.take() {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Applies a message of the server.
    pub(super) fn handle_message(&mut self, message: Message<'_>) {
        self.connection.last_activity = Some(Instant::now());
        match message {
            Message::Welcome(Welcome { next, .. }) => match self.queue.welcome(next) {
                Ok(is_new) => {
                    self.connection.is_welcome = true;
                    (self.trouble, self.cause) = (None, Cause::default());
                    self.note_answer(is_new);
                }
                Err(error) => {
                    let message = format!("The server cannot resume this session: {error}.");
                    self.connection.refused = Some(Refused { message, ..Refused::default() });
                }
            },
            Message::Ack(Ack { seq }) => {
                if self.connection.is_goodbye && self.queue.is_empty() {
                    self.is_ended = true;
                }
                let is_new = self.queue.ack(seq);
                self.note_answer(is_new);
            }
            Message::Refused(refused) => {
                self.connection.refused = Some(refused);
            }
            // A request that finds the channel full is dropped: requests are not being read.
            Message::Ask(ask) => drop(self.asks.try_send(ask)),
            _ => {}
        }
    }

    /// Notes an answer of the server: the wait for one is over, or starts again if more is unacknowledged.
    pub(super) fn note_answer(&mut self, is_new: bool) {
        self.connection.has_progress |= is_new;
        let is_awaiting = self.queue.is_waiting() || self.connection.is_goodbye && !self.is_ended;
        if is_new || !is_awaiting {
            self.connection.awaiting_since = is_awaiting.then(Instant::now);
        }
    }

    pub(super) fn stats(&self) -> PublisherStats {
        let (memory_bytes, spool_bytes) = self.queue.bytes();
        PublisherStats {
            batches: self.queue.last(),
            batches_acked: self.queue.acked(),
            events: self.queue.events,
            events_acked: self.queue.events_acked,
            bytes: self.bytes,
            connections: self.connections,
            memory_bytes,
            spool_bytes,
            is_connected: self.connection.is_welcome && self.connection.closed.is_none(),
            is_post: self.is_post,
            is_ended: self.is_ended,
            failure: self.failure.clone(),
            trouble: self.trouble.clone(),
            cause: self.cause,
            spool_failure: self.queue.spool_failure.clone(),
        }
    }
}
