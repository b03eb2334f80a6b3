//! The socket of a viewer.
//!
//! A viewer gets what the store has, then what the bus publishes. If the bus had to skip batches because the viewer was too
//! slow, the viewer reads on from the store. So nobody waits for a slow viewer, and a slow viewer misses nothing unless it
//! is far behind.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::WebSocket;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout};
use trace::limits::WireLimits;
use wire::{Batch, Decoder, Message, PROTOCOL, SessionState, Status, Watch};

use super::App;
use super::connection_slots::ConnectionSlot;
use super::history::{History, Stored};
use super::refusal::refuse;
use super::socket::{Received, Socket, stopped};
use crate::access::{Caller, Grant, Role};
use crate::bus::{Delivery, Subscription};
use crate::clock::now_us;
use crate::ingest::{IngestError, Session, View, Viewing};
use crate::store::{StoreError, StoreResult};

/// The time between two checks of a session's state.
const CHECK: Duration = Duration::from_millis(250);
/// The number of checks after which an unchanged state is sent again.
const CHECKS: u32 = 4;

/// Why a viewer's socket ends.
enum End {
    /// The viewer has gone, or does not read.
    Gone,
    /// The server ends the stream, with a reason.
    Refused(IngestError),
}

impl From<IngestError> for End {
    fn from(error: IngestError) -> Self {
        Self::Refused(error)
    }
}

/// Serves a viewer until it disconnects. It keeps the slot of its connection until its watch was accepted, and then has one
/// of the viewers' places.
pub(super) async fn serve(
    socket: WebSocket,
    app: App,
    id: String,
    mut caller: Caller,
    slot: Option<Arc<ConnectionSlot>>,
) {
    let mut socket = Socket::new(socket, app.limits());
    let received = receive_watch(&mut socket, &app, &mut caller).await;
    let admitted = received.and_then(|(watch, grant)| {
        let session = app.sessions.get(&id).ok_or(IngestError::Session)?;
        let free = Arc::clone(&app.sessions.viewers).try_acquire_owned();
        let permit = free.map_err(|_| IngestError::Busy("this server has as many viewers as it allows"))?;
        Ok((session, (watch, grant), permit))
    });
    let (admitted, end) = match admitted {
        Ok((session, (watch, grant), permit)) => {
            if let Some(slot) = &slot {
                slot.give_up();
            }
            let viewing = Viewing::begin(&session);
            let end = Viewer::new(&mut socket, &app, (&session, grant), &watch).run().await;
            drop(viewing);
            (Some((session, permit)), end)
        }
        Err(end) => (None, end),
    };
    // Only the name of a session: what else a stranger wrote into the address must not enter the log.
    let known = admitted.as_ref().map(|(session, _)| Arc::clone(session)).or_else(|| app.sessions.get(&id));
    let session = known.as_ref().map(|session| session.id());
    match end {
        End::Gone => tracing::debug!(session, "viewer disconnected"),
        End::Refused(error) => {
            let message = refuse(&app.sessions, "viewer", &caller, session, &error);
            socket.send(message.to_bytes()).await;
        }
    }
    socket.close().await;
}

/// Waits for the first message, and checks the token if it comes with it.
async fn receive_watch(socket: &mut Socket, app: &App, caller: &mut Caller) -> Result<(Watch, Grant), End> {
    let limits = app.limits();
    let mut decoder = Decoder::new(&WireLimits { frame_bytes: limits.hello_bytes, ..WireLimits::default() });
    let mut stopping = app.sessions.stopping();
    let first = async {
        loop {
            let bytes = match socket.receive().await {
                Received::Closed => return Err(End::Gone),
                Received::Control => continue,
                Received::Bytes(bytes) => bytes,
            };
            match decoder.read(&mut &*bytes) {
                Ok(None) => {}
                Ok(Some(Message::Watch(watch))) => return Ok(watch),
                Ok(Some(_)) | Err(_) => {
                    return Err(IngestError::Malformed("the first message must be a watch".to_owned()).into());
                }
            }
        }
    };
    let late = || End::Refused(IngestError::Malformed("no watch arrived in time".to_owned()));
    let watch = tokio::select! {
        watch = timeout(Duration::from_secs(limits.hello_seconds), first) => watch.map_err(|_| late())??,
        () = stopped(&mut stopping) => return Err(IngestError::Restart.into()),
    };
    if watch.protocol != PROTOCOL {
        return Err(IngestError::Protocol(watch.protocol).into());
    }
    let grant = app.sessions.access().identify(caller, &watch.token).map_err(IngestError::from)?;
    *caller = Caller::with(caller.peer, grant.clone());
    grant.check(Role::Read).map_err(IngestError::from)?;
    Ok((watch, grant))
}

struct Viewer<'a> {
    socket: &'a mut Socket,
    app: &'a App,
    session: &'a Arc<Session>,
    grant: Grant,
    bus: Box<dyn Subscription>,
    /// The last batch that was sent.
    last: u64,
    /// The number of events that the viewer can hold; 0 for any number.
    events: u64,
    /// Where the last batch ends in the store (segment number, byte), if known.
    end: Option<(u32, u64)>,
    checks: Interval,
    /// Checks since the state was sent.
    checked: u32,
    state: Option<SessionState>,
}

impl<'a> Viewer<'a> {
    fn new(socket: &'a mut Socket, app: &'a App, (session, grant): (&'a Arc<Session>, Grant), watch: &Watch) -> Self {
        let mut checks = interval(CHECK);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Before the store is read, so that no batch falls between the two.
        let bus = app.sessions.bus().subscribe(session.id());
        let Watch { after, events, .. } = *watch;
        Self { socket, app, session, grant, bus, last: after, events, end: None, checks, checked: 0, state: None }
    }

    async fn run(mut self) -> End {
        match self.follow().await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn follow(&mut self) -> Result<Infallible, End> {
        let mut stopping = self.app.sessions.stopping();
        self.check_state().await?;
        self.catch_up().await?;
        loop {
            tokio::select! {
                delivery = self.bus.next() => match delivery {
                    Delivery::Batch(batch) if batch.seq <= self.last => {}
                    Delivery::Batch(batch) if batch.seq == self.last.saturating_add(1) => {
                        self.send(batch.message.clone()).await?;
                        (self.last, self.end) = (batch.seq, Some(batch.end));
                    }
                    // Batches before this one were published before the subscription, or skipped since.
                    Delivery::Batch(_) => self.catch_up().await?,
                    Delivery::Lagged => {
                        self.app.sessions.counters.lagged.add(1);
                        self.catch_up().await?;
                    }
                },
                received = self.socket.receive() => check_received(&received)?,
                _ = self.checks.tick() => self.check_state().await?,
                () = stopped(&mut stopping) => return Err(IngestError::Restart.into()),
            }
        }
    }

    /// Sends what the store has after the last batch that was sent.
    async fn catch_up(&mut self) -> Result<(), End> {
        loop {
            let Some(mut history) = self.history().await? else { return Ok(()) };
            loop {
                let read;
                (history, read) = read_on(history).await?;
                match read {
                    Ok(stored) if stored.is_empty() => return Ok(()),
                    Ok(stored) => {
                        for stored in stored {
                            self.send_stored(stored).await?;
                        }
                    }
                    // Deleted while it was read: continue with what is still kept.
                    Err(StoreError::Missing) if !self.is_deleted() => break,
                    Err(StoreError::Missing) => return Err(IngestError::Session.into()),
                    Err(error) => return Err(IngestError::Store(error).into()),
                }
            }
            self.end = None;
        }
    }

    /// Returns what the viewer has to read next, after telling it which batches it will not get.
    async fn history(&mut self) -> Result<Option<History>, End> {
        let (sessions, limits) = (&self.app.sessions, self.app.limits());
        // From the exact byte, unless that is too far back or no longer kept.
        let is_near = |view: &View, end: (u32, u64)| {
            view.segments.iter().any(|segment| segment.number == end.0) && view.bytes_behind(end) <= limits.behind_bytes
        };
        if let Some(end) = self.end.filter(|end| self.session.look(|view| is_near(view, *end))) {
            return Ok(Some(History::behind(sessions.store(), self.session, end)));
        }
        let found = History::after(sessions.store(), self.session, self.last, self.events, limits);
        let Some((skipped, history)) = found else { return Ok(None) };
        if let Some(skipped) = skipped {
            if self.last > 0 {
                sessions.counters.skipped.add(1);
                tracing::info!(
                    session = self.session.id(),
                    from = skipped.from,
                    to = skipped.to,
                    "viewer skipped batches"
                );
            }
            self.last = skipped.to - 1;
            self.send(Message::Skipped(skipped).to_bytes()).await?;
        }
        Ok(Some(history))
    }

    async fn send_stored(&mut self, Stored { seq, sent_us, chunks, end }: Stored) -> Result<(), End> {
        let message = Message::Batch(Batch { seq, sent_us, chunks: &chunks }).to_bytes();
        self.send(message).await?;
        if seq > 0 {
            (self.last, self.end) = (seq, Some(end));
        }
        // Reading much history must not delay pings and states.
        tokio::select! {
            biased;
            received = self.socket.receive() => check_received(&received),
            _ = self.checks.tick() => self.check_state().await,
            () = std::future::ready(()) => Ok(()),
        }
    }

    async fn send(&mut self, message: Vec<u8>) -> Result<(), End> {
        let counters = &self.app.sessions.counters;
        counters.sent_bytes.add(message.len() as u64);
        let begun = Instant::now();
        if self.socket.send(message).await {
            return Ok(());
        }
        if begun.elapsed() >= Duration::from_secs(self.app.limits().idle_seconds) {
            counters.stuck.add(1);
            tracing::warn!(session = self.session.id(), "viewer dropped: it did not read for too long");
        }
        Err(End::Gone)
    }

    fn is_deleted(&self) -> bool {
        self.app.sessions.get(self.session.id()).is_none()
    }

    /// Sends the session's state: about once a second, and at once when it changes.
    async fn check_state(&mut self) -> Result<(), End> {
        if self.is_deleted() {
            return Err(IngestError::Session.into());
        }
        self.grant.check(Role::Read).map_err(IngestError::from)?;
        let state = self.session.state(self.app.limits());
        self.checked += 1;
        if self.state == Some(state) && self.checked < CHECKS {
            return Ok(());
        }
        (self.state, self.checked) = (Some(state), 0);
        let now_us = now_us();
        let status = self.session.look(|view| Status {
            state,
            last: view.last,
            now_us,
            events: view.totals.events(),
            lost_events: view.totals.lost(),
            // The clock may have been set back since the last batch.
            behind_us: now_us.saturating_sub(view.record.last_us).max(0),
        });
        self.send(Message::Status(status).to_bytes()).await
    }
}

/// Ignores what a viewer sends after its first message, unless it disconnects.
fn check_received(received: &Received) -> Result<(), End> {
    match received {
        Received::Closed => Err(End::Gone),
        Received::Bytes(_) | Received::Control => Ok(()),
    }
}

async fn read_on(mut history: History) -> Result<(History, StoreResult<Vec<Stored>>), End> {
    let read = tokio::task::spawn_blocking(move || {
        let read = history.read();
        (history, read)
    });
    read.await.map_err(|_| End::Gone)
}
