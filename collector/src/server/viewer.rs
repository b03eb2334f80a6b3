//! A viewer's socket.
//!
//! A viewer gets what the store has, then what the bus brings. Where the bus had to leave something out it reads the store
//! again, from where it was; so nobody waits for a slow one, and a slow one misses nothing unless it is far behind.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::ws::WebSocket;
use shared::limits::WireLimits;
use shared::wire::{Batch, Decoder, Message, PROTOCOL, SessionState, Status, Watch};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout};

use super::App;
use super::history::{History, Stored};
use super::socket::{Came, Line, stopped};
use crate::bus::{Delivery, Subscription};
use crate::ingest::{IngestError, Session, now_us};
use crate::store::{StoreError, StoreResult};

/// Time between two looks at a session's state.
const LOOK: Duration = Duration::from_millis(250);
/// Looks between two words about a state that is the same.
const LOOKS: u32 = 4;

/// Why a viewer's socket ends.
enum Over {
    /// The viewer has gone, or takes nothing.
    Gone,
    /// The server says why.
    Refused(IngestError),
}

impl From<IngestError> for Over {
    fn from(error: IngestError) -> Self {
        Self::Refused(error)
    }
}

/// Serves a viewer to its end. Its place is held as long.
pub(super) async fn serve(
    socket: WebSocket,
    app: App,
    session: Arc<Session>,
    is_known: bool,
    _place: OwnedSemaphorePermit,
) {
    let mut line = Line::new(socket, app.limits());
    session.viewers.fetch_add(1, Ordering::Relaxed);
    let over = match hear_watch(&mut line, &app, is_known).await {
        Ok(watch) => Viewer::new(&mut line, &app, &session, &watch).run().await,
        Err(over) => over,
    };
    session.viewers.fetch_sub(1, Ordering::Relaxed);
    if let Over::Refused(error) = over {
        let refused = error.refused();
        app.sessions.counters.refuse(refused.code);
        line.send(Message::Refused(refused).to_bytes()).await;
    }
    line.close().await;
}

/// Waits for the first frame.
async fn hear_watch(line: &mut Line, app: &App, is_known: bool) -> Result<Watch, Over> {
    let mut decoder = Decoder::new(&WireLimits::default());
    let hello = async {
        loop {
            match line.recv().await {
                Came::Over => return Err(Over::Gone),
                Came::Nothing => {}
                Came::Bytes(bytes) => {
                    let (mut watch, mut other) = (None, false);
                    let read = decoder.push(&bytes, &mut |frame| match frame {
                        Message::Watch(frame) => watch = watch.take().or(Some(frame)),
                        _ => other = true,
                    });
                    if read.is_err() || other {
                        return Err(IngestError::Malformed("the first frame is a watch".to_owned()).into());
                    }
                    if let Some(watch) = watch {
                        return Ok(watch);
                    }
                }
            }
        }
    };
    let late = || Over::Refused(IngestError::Malformed("no watch came in time".to_owned()));
    let seconds = Duration::from_secs(app.limits().hello_seconds);
    let watch = timeout(seconds, hello).await.map_err(|_| late())??;
    if watch.protocol != PROTOCOL {
        return Err(IngestError::Protocol(watch.protocol).into());
    }
    if !is_known && !app.sessions.accepts(&watch.token) {
        return Err(IngestError::Token.into());
    }
    Ok(watch)
}

struct Viewer<'a> {
    line: &'a mut Line,
    app: &'a App,
    session: &'a Arc<Session>,
    news: Box<dyn Subscription>,
    /// The last batch that was sent.
    last: u64,
    /// How many events the viewer can hold; 0 for any number.
    events: u64,
    /// Where it ended in the store, where that is known.
    end: Option<(u32, u64)>,
    looks: Interval,
    looked: u32,
    state: Option<SessionState>,
}

impl<'a> Viewer<'a> {
    fn new(line: &'a mut Line, app: &'a App, session: &'a Arc<Session>, watch: &Watch) -> Self {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Before the store is looked at, so that nothing falls between the two.
        let news = app.sessions.bus().subscribe(session.id());
        let Watch { after, events, .. } = *watch;
        Self { line, app, session, news, last: after, events, end: None, looks, looked: 0, state: None }
    }

    async fn run(mut self) -> Over {
        match self.follow().await {
            Ok(never) => match never {},
            Err(over) => over,
        }
    }

    async fn follow(&mut self) -> Result<std::convert::Infallible, Over> {
        let mut stopping = self.app.sessions.stopping();
        self.look().await?;
        self.catch_up().await?;
        loop {
            tokio::select! {
                heard = self.news.next() => match heard {
                    Delivery::Batch(batch) if batch.seq <= self.last => {}
                    Delivery::Batch(batch) if batch.seq == self.last.saturating_add(1) => {
                        self.send(batch.message.clone()).await?;
                        (self.last, self.end) = (batch.seq, Some(batch.end));
                    }
                    // One that was sent before the subscription began, or left out since.
                    Delivery::Batch(_) => self.catch_up().await?,
                    Delivery::Lagged => {
                        self.app.sessions.counters.lagged.add(1);
                        self.catch_up().await?;
                    }
                },
                came = self.line.recv() => hear(&came)?,
                _ = self.looks.tick() => self.look().await?,
                () = stopped(&mut stopping) => return Err(IngestError::Restart.into()),
            }
        }
    }

    /// Sends what the store has from where the viewer is.
    async fn catch_up(&mut self) -> Result<(), Over> {
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
                    // Dropped while it was read: from what is kept, then.
                    Err(StoreError::Missing) if !self.is_deleted() => break,
                    Err(StoreError::Missing) => return Err(IngestError::Session.into()),
                    Err(error) => return Err(IngestError::Store(error).into()),
                }
            }
            self.end = None;
        }
    }

    /// What the viewer is to read, after it was told what it won't.
    async fn history(&mut self) -> Result<Option<History>, Over> {
        let (sessions, limits) = (&self.app.sessions, self.app.limits());
        // From the very byte, unless that is too far back or gone.
        let is_near = |view: &crate::ingest::View, end: (u32, u64)| {
            view.segments.iter().any(|segment| segment.number == end.0) && view.bytes_behind(end) <= limits.behind_bytes
        };
        if let Some(end) = self.end.filter(|end| self.session.look(|view| is_near(view, *end))) {
            return Ok(Some(History::behind(sessions.store(), self.session, end)));
        }
        let Some((gap, history)) = History::after(sessions.store(), self.session, self.last, self.events, limits)
        else {
            return Ok(None);
        };
        if let Some(gap) = gap {
            if self.last > 0 {
                sessions.counters.skipped.add(1);
            }
            self.last = gap.to - 1;
            self.send(Message::Skipped(gap).to_bytes()).await?;
        }
        Ok(Some(history))
    }

    async fn send_stored(&mut self, Stored { seq, sent_us, chunks, end }: Stored) -> Result<(), Over> {
        let frame = Message::Batch(Batch { seq, sent_us, chunks: &chunks }).to_bytes();
        self.send(frame).await?;
        if seq > 0 {
            (self.last, self.end) = (seq, Some(end));
        }
        // Who is busy with history still hears, and is heard.
        tokio::select! {
            biased;
            came = self.line.recv() => hear(&came),
            _ = self.looks.tick() => self.look().await,
            () = std::future::ready(()) => Ok(()),
        }
    }

    async fn send(&mut self, frame: Vec<u8>) -> Result<(), Over> {
        let counters = &self.app.sessions.counters;
        counters.sent_bytes.add(frame.len() as u64);
        let begun = Instant::now();
        if self.line.send(frame).await {
            return Ok(());
        }
        if begun.elapsed() >= Duration::from_secs(self.app.limits().idle_seconds) {
            counters.stuck.add(1);
        }
        Err(Over::Gone)
    }

    fn is_deleted(&self) -> bool {
        self.app.sessions.get(self.session.id()).is_none()
    }

    /// Says how the session is: about once a second, and at once when that changes.
    async fn look(&mut self) -> Result<(), Over> {
        if self.is_deleted() {
            return Err(IngestError::Session.into());
        }
        let state = self.session.state(self.app.limits());
        self.looked += 1;
        if self.state == Some(state) && self.looked < LOOKS {
            return Ok(());
        }
        (self.state, self.looked) = (Some(state), 0);
        let now_us = now_us();
        let status = self.session.look(|view| Status {
            state,
            last: view.last,
            now_us,
            events: view.totals.events(),
            lost_events: view.totals.lost(),
            // A clock that was set back makes nothing come from the future.
            behind_us: now_us.saturating_sub(view.record.last_us).max(0),
        });
        self.send(Message::Status(status).to_bytes()).await
    }
}

/// A viewer has nothing to say after its first frame; that it goes is heard.
fn hear(came: &Came) -> Result<(), Over> {
    match came {
        Came::Over => Err(Over::Gone),
        Came::Bytes(_) | Came::Nothing => Ok(()),
    }
}

async fn read_on(mut history: History) -> Result<(History, StoreResult<Vec<Stored>>), Over> {
    let read = tokio::task::spawn_blocking(move || {
        let read = history.read();
        (history, read)
    });
    read.await.map_err(|_| Over::Gone)
}
