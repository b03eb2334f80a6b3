//! Watching a session: the worker's own socket to the server, and what it brings put together and told to the page.
//!
//! ```text
//! socket ─► feed (frames, each batch once) ─► growing session ─► page: how it is, what it holds
//! ```
//! The page is told of a new state only when it has taken in the last one, and the worker's time is divided between what
//! comes and what is asked: neither side can fall behind further and further.

mod feed;
mod growing;
mod pace;
mod socket;

use std::cell::RefCell;

use js_sys::{Date, Math};
use shared::limits::LiveLimits;
use shared::query::{Answer, Query};
use shared::wire::SessionState;

use self::feed::{Fault, Feed};
use self::growing::Growing;
use self::pace::{ClockOffset, lag_us, rest_ms, retry_seconds};
use self::socket::{Event, Socket, Timer};
use crate::entry::{now, post};
use protocol::message::{Connection, FromWorker, LiveStatus};

/// Milliseconds between two reports of how the session is while nothing comes.
const REPORT_EVERY_MS: i32 = 500;

thread_local! {
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
}

/// What watches a session.
struct Watcher {
    url: String,
    token: String,
    feed: Feed,
    session: Growing,
    socket: Option<Socket>,
    connection: Connection,
    tries: u32,
    /// Whether the picture stands still.
    is_held: bool,
    retry: Option<Timer>,
    refresh: Option<Timer>,
    report: Option<Timer>,
    /// Milliseconds that went into what came since the last state was told.
    spent_ms: f64,
    /// Whether the page has taken in the last state.
    is_taken: bool,
    /// Whether something came that is not in the last state.
    is_stale: bool,
    /// Whether all is here that the server had at first.
    has_caught_up: bool,
    offset: ClockOffset,
    /// When the newest event happened, by the collector's clock.
    newest_us: Option<i64>,
    /// When the last batch of what is shown was sent, by the collector's clock.
    sent_us: Option<i64>,
    /// The same of what has come.
    came_sent_us: Option<i64>,
    /// When the last event came, to the server where it waited there.
    came_us: Option<i64>,
    /// How long what came last had waited in the store, in microseconds.
    waited_us: i64,
    held_events: u64,
    dropped_events: u64,
}

/// Begins to watch.
pub(crate) fn start(url: String, token: String) {
    let watcher = Watcher {
        url,
        token,
        feed: Feed::default(),
        session: Growing::default(),
        socket: None,
        connection: Connection::Connecting,
        tries: 0,
        is_held: false,
        retry: None,
        refresh: None,
        report: None,
        spent_ms: 0.0,
        is_taken: true,
        is_stale: false,
        has_caught_up: false,
        offset: ClockOffset::default(),
        newest_us: None,
        sent_us: None,
        came_sent_us: None,
        came_us: None,
        waited_us: 0,
        held_events: 0,
        dropped_events: 0,
    };
    WATCHER.set(Some(watcher));
    with(|watcher| {
        watcher.connect();
        watcher.report();
    });
}

/// The answer to a question about the session; `None` while there is none, or nothing is watched.
pub(crate) fn answer(device: usize, query: &Query) -> Option<Answer> {
    WATCHER.with_borrow_mut(|watcher| Some(watcher.as_mut()?.session.answer(device, query)))
}

/// The page has taken in the last state; an allocation is selected there.
pub(crate) fn drawn(selected: Option<(u32, u32)>) {
    with(|watcher| {
        watcher.is_taken = true;
        watcher.session.selected = selected;
        watcher.want_refresh();
    });
}

/// The picture stands still, or no longer.
pub(crate) fn pause(is_held: bool) {
    with(|watcher| {
        watcher.is_held = is_held;
        // What was let pass meanwhile is asked for.
        if !is_held && watcher.feed.is_held() {
            watcher.has_caught_up = false;
            watcher.connect();
        }
    });
}

fn with(act: impl FnOnce(&mut Watcher)) {
    WATCHER.with_borrow_mut(|watcher| {
        if let Some(watcher) = watcher {
            act(watcher);
        }
    });
}

/// This browser's clock, in microseconds since the epoch.
fn clock_us() -> i64 {
    (Date::now() * 1e3) as i64
}

impl Watcher {
    fn connect(&mut self) {
        self.retry = None;
        self.connection = Connection::Connecting;
        self.socket = Socket::open(&self.url, |event| with(|watcher| watcher.heard(event)));
        if self.socket.is_none() {
            self.lost();
        }
    }

    fn heard(&mut self, event: Event) {
        match event {
            Event::Opened => {
                let hello = self.feed.begin(&self.token);
                self.connection = Connection::Open;
                if let Some(socket) = &self.socket {
                    socket.send(&hello);
                }
                self.tell();
            }
            Event::Came(bytes) => self.came(&bytes),
            Event::Closed => self.lost(),
        }
    }

    fn came(&mut self, bytes: &[u8]) {
        let (began, time_us) = (now(), clock_us());
        let was_caught_up = self.feed.is_caught_up();
        let Self { feed, session, offset, came_sent_us, is_stale, .. } = self;
        let (mut unreadable, mut has_come) = (None, false);
        let result = feed.push(bytes, &mut |chunks, sent_us| {
            has_come = true;
            unreadable = unreadable.take().or(session.push(chunks).err());
            *is_stale = true;
            *came_sent_us = sent_us.or(*came_sent_us);
            // What waited in the store says nothing about clocks.
            if let Some(sent_us) = sent_us.filter(|_| was_caught_up) {
                offset.see(sent_us, time_us);
            }
        });
        if has_come {
            // The newest of what waited in the store came as long ago as the server says.
            self.waited_us = if was_caught_up { 0 } else { self.feed.status().behind_us.max(0) };
        }
        self.spent_ms += now() - began;
        if self.feed.is_late() {
            self.session.begin_late();
        }
        if self.is_held && self.session.is_nearly_full() {
            self.feed.hold();
        }
        if let Some(error) = unreadable {
            return self.refuse(error.to_string(), false);
        }
        match result {
            Ok(()) => {
                self.tries = 0;
                self.want_refresh();
                // Of a session without a batch nothing has to be put together.
                self.has_caught_up |= self.feed.is_caught_up() && !self.is_stale;
                if self.feed.is_done() {
                    self.end();
                }
            }
            Err(Fault::Refused { message, retry: false, wants_token }) => {
                self.refuse(message, wants_token);
            }
            Err(_) => self.lost(),
        }
    }

    /// Nothing more is to be had; what came stays.
    fn refuse(&mut self, message: String, wants_token: bool) {
        self.socket = None;
        self.connection = Connection::Refused { message, wants_token };
        self.tell();
    }

    /// All has come: nothing is waited for any more.
    fn end(&mut self) {
        self.socket = None;
        self.connection = Connection::Done;
        self.tell();
    }

    fn lost(&mut self) {
        self.socket = None;
        if self.feed.is_done() {
            return self.end();
        }
        let seconds = retry_seconds(self.tries, Math::random());
        self.tries = self.tries.saturating_add(1);
        self.wait(seconds);
    }

    /// Counts down to the next try.
    fn wait(&mut self, seconds: u32) {
        self.connection = Connection::Retrying { seconds };
        self.tell();
        self.retry = Timer::new(1_000, move || {
            with(|watcher| if seconds > 1 { watcher.wait(seconds - 1) } else { watcher.connect() });
        });
    }

    /// Puts together what came as soon as it is its turn, and the page has taken in what was told before.
    fn want_refresh(&mut self) {
        if self.is_stale && self.is_taken && self.refresh.is_none() {
            self.refresh = Timer::new(rest_ms(self.spent_ms) as i32, || with(Self::refresh));
        }
    }

    fn refresh(&mut self) {
        self.refresh = None;
        self.is_stale = false;
        let began = now();
        let grown = self.session.refresh();
        self.spent_ms = now() - began;
        // What came is not here before it is put together.
        self.has_caught_up |= self.feed.is_caught_up();
        let Some(grown) = grown else { return };
        let devices = &grown.summary.devices;
        let known = self.held_events + self.dropped_events;
        self.held_events = devices.iter().map(|device| u64::from(device.events)).sum();
        self.dropped_events += grown.trims.iter().map(|trim| u64::from(trim.events)).sum::<u64>();
        // Statistics come of a job that allocates nothing, too.
        if self.held_events + self.dropped_events != known {
            self.came_us = Some(clock_us().saturating_sub(self.waited_us));
        }
        let newest = devices.iter().filter(|device| device.events > 0 && device.has_times);
        self.newest_us = newest.map(|device| device.start_us.saturating_add(device.span_us)).max();
        self.sent_us = self.came_sent_us;
        self.is_taken = false;
        // The page has it before it is told that all has come: what it opens with is made of all.
        post(&FromWorker::Update(Box::new(grown)));
        self.tell();
    }

    /// Tells how the session is, now and again.
    fn report(&mut self) {
        self.tell();
        self.report = Timer::new(REPORT_EVERY_MS, || with(Self::report));
    }

    fn tell(&self) {
        let (status, time_us) = (self.feed.status(), clock_us());
        let behind = lag_us(time_us.saturating_sub(self.offset.us()), self.newest_us, self.sent_us);
        post(&FromWorker::Live(Box::new(LiveStatus {
            state: status.state,
            connection: self.connection.clone(),
            is_caught_up: self.has_caught_up,
            behind_us: behind,
            quiet_us: self.came_us.map_or(0, |came| time_us.saturating_sub(came).max(0)),
            events: status.events,
            lost: status.lost_events,
            events_per_second: if status.state == SessionState::Live { self.feed.events_per_second() } else { 0.0 },
            held_events: self.held_events,
            held_bytes: self.session.bytes(),
            limit_events: LiveLimits::default().events as u64,
            dropped_events: self.dropped_events,
            is_late: self.feed.is_late(),
            missed: self.feed.missed().cloned(),
            waiting_events: self.feed.waiting_events(),
        })));
    }
}
