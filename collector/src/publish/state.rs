//! What the recorder's end, the sender and the handle share.

use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shared::wire::{Ack, Ask, Message, Refused, Welcome};

use super::PublisherStats;
use super::queue::Queue;

/// A lock with a bell. Held for moments only, and never while something is sent.
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The process that it works in: after a fork, the child has the memory and none of the threads.
    pub(super) process: u32,
}

/// All that is known.
pub(super) struct State {
    pub(super) queue: Queue,
    /// The payload of the trace's header; empty until it came.
    pub(super) header: Vec<u8>,
    pub(super) link: Link,
    /// Until when the rest may be delivered; once it is set, nothing more comes.
    pub(super) end: Option<Instant>,
    /// The sender has ended.
    pub(super) is_done: bool,
    /// The session was told to have ended, and that was heard.
    pub(super) is_ended: bool,
    /// What can't be helped.
    pub(super) failure: Option<String>,
    /// What went wrong last, and may go better.
    pub(super) trouble: Option<String>,
    pub(super) connections: u64,
    pub(super) bytes: u64,
    pub(super) is_post: bool,
    asks: SyncSender<Ask>,
}

/// The present connection, as those hear of it who wait.
#[derive(Default)]
pub(super) struct Link {
    /// Counts connections: what a thread says of an earlier one is not meant.
    pub(super) generation: u64,
    /// The hello was taken.
    pub(super) is_welcome: bool,
    /// Something was acknowledged.
    pub(super) is_fruitful: bool,
    /// Why it ended.
    pub(super) closed: Option<String>,
    pub(super) refused: Option<Refused>,
    /// The other side wants this back.
    pub(super) ping: Option<Vec<u8>>,
    /// Since when the server owes a word.
    pub(super) owed: Option<Instant>,
    /// When something came or went.
    pub(super) active: Option<Instant>,
    /// The goodbye was said.
    pub(super) is_goodbye: bool,
    /// For who has to end it from outside.
    pub(super) socket: Option<TcpStream>,
}

impl Shared {
    pub(super) fn new(queue: Queue, asks: SyncSender<Ask>) -> Self {
        let state = State {
            queue,
            header: Vec::new(),
            link: Link::default(),
            end: None,
            is_done: false,
            is_ended: false,
            failure: None,
            trouble: None,
            connections: 0,
            bytes: 0,
            is_post: false,
            asks,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), process: std::process::id() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Each step under the lock is whole: what a thread that panicked left can be used.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is the child of a fork. The lock may be held for ever there, by a thread that is not.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.process != std::process::id()
    }

    /// Rouses all who wait.
    pub(super) fn ring(&self) {
        self.changed.notify_all();
    }

    /// Waits for a ring, or so long.
    pub(super) fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until something is so, at most until then. Whether it is.
    pub(super) fn wait_until(&self, end: Instant, is_so: impl Fn(&State) -> bool) -> bool {
        let mut state = self.lock();
        while !is_so(&state) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.wait(state, left);
        }
        true
    }
}

impl State {
    /// Whether the time to deliver is over.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// A connection begins; its number.
    pub(super) fn begin(&mut self, socket: Option<TcpStream>) -> u64 {
        let generation = self.link.generation + 1;
        let now = Some(Instant::now());
        // A hello is answered.
        self.link = Link { generation, socket, owed: now, active: now, ..Link::default() };
        self.connections += 1;
        generation
    }

    /// Ends the connection, whoever waits for it.
    pub(super) fn cut(&mut self) {
        if let Some(socket) = self.link.socket.take() {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Takes what the server says.
    pub(super) fn hear(&mut self, frame: Message<'_>) {
        self.link.active = Some(Instant::now());
        match frame {
            Message::Welcome(Welcome { next, .. }) => match self.queue.welcome(next) {
                Ok(is_news) => {
                    self.link.is_welcome = true;
                    self.trouble = None;
                    self.settle(is_news);
                }
                Err(astray) => {
                    let message = format!("The server can't go on with this session: {astray}.");
                    self.link.refused = Some(Refused { message, ..Refused::default() });
                }
            },
            Message::Ack(Ack { seq }) => {
                if self.link.is_goodbye && self.queue.is_empty() {
                    self.is_ended = true;
                }
                let is_news = self.queue.ack(seq);
                self.settle(is_news);
            }
            Message::Refused(refused) => {
                self.link.refused = Some(refused);
            }
            // When nobody takes them, they are of no use.
            Message::Ask(ask) => drop(self.asks.try_send(ask)),
            _ => {}
        }
    }

    /// The server gave a sign of life: the debt is paid, or begins anew.
    pub(super) fn settle(&mut self, is_news: bool) {
        self.link.is_fruitful |= is_news;
        let owes = self.queue.is_waiting() || self.link.is_goodbye && !self.is_ended;
        if is_news || !owes {
            self.link.owed = owes.then(Instant::now);
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
            is_connected: self.link.is_welcome && self.link.closed.is_none(),
            is_post: self.is_post,
            is_ended: self.is_ended,
            failure: self.failure.clone(),
            trouble: self.trouble.clone(),
            spool_failure: self.queue.spool_failure.clone(),
        }
    }
}
