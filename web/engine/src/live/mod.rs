//! Watches a session: the worker has its own socket to the server, reads the messages from it and reports to the page.
//!
//! ```text
//! socket ─► feed (messages, each batch once) ─► watched session ─► page: status and summary
//! ```
//! The worker sends a new state to the page only after the page has drawn the last one, and divides its time between
//! reading and answering: neither side can fall behind further and further.

mod feed;
mod pace;
mod session;
mod socket;

use std::cell::RefCell;

use ::session::RecordedRequests;
use js_sys::{Date, Math};
use query::own_rules::OwnRules;
use query::{Answer, Query};
use trace::limits::LiveLimits;
use wire::SessionState;

use self::feed::{Feed, FeedFault};
use self::pace::{ClockOffset, lag_us, rest_ms, retry_seconds};
use self::session::WatchedSession;
use self::socket::{Socket, SocketEvent, Timer};
use crate::entry::{now, post};
use protocol::message::{Connection, FromWorker, LiveStatus};

/// Milliseconds between two reports of the session's status while no events arrive.
const REPORT_EVERY_MS: i32 = 500;

thread_local! {
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
}

/// Watches a session.
struct Watcher {
    url: String,
    token: String,
    feed: Feed,
    session: WatchedSession,
    socket: Option<Socket>,
    connection: Connection,
    tries: u32,
    /// Whether the view is paused.
    is_paused: bool,
    retry: Option<Timer>,
    refresh: Option<Timer>,
    report: Option<Timer>,
    /// Milliseconds spent on reading since the last state was sent to the page.
    spent_ms: f64,
    /// Whether the page has drawn the last state.
    is_drawn: bool,
    /// Whether something arrived that is not in the last state.
    is_stale: bool,
    /// Whether everything is here that the server had when the connection was established.
    has_caught_up: bool,
    offset: ClockOffset,
    /// The time of the newest event, by the collector's clock.
    newest_us: Option<i64>,
    /// When the last batch that the page shows was sent, by the collector's clock.
    sent_us: Option<i64>,
    /// When the last batch that has arrived was sent, by the collector's clock.
    arrived_sent_us: Option<i64>,
    /// When the last event arrived: at the server, if it waited there.
    arrived_us: Option<i64>,
    /// How long the last batch had waited in the store, in microseconds.
    waited_us: i64,
    held_events: u64,
    dropped_events: u64,
}

/// Starts watching the session whose WebSocket is at `url`.
pub(crate) fn start(url: String, token: String) {
    let watcher = Watcher {
        url,
        token,
        feed: Feed::default(),
        session: WatchedSession::default(),
        socket: None,
        connection: Connection::Connecting,
        tries: 0,
        is_paused: false,
        retry: None,
        refresh: None,
        report: None,
        spent_ms: 0.0,
        is_drawn: true,
        is_stale: false,
        has_caught_up: false,
        offset: ClockOffset::default(),
        newest_us: None,
        sent_us: None,
        arrived_sent_us: None,
        arrived_us: None,
        waited_us: 0,
        held_events: 0,
        dropped_events: 0,
    };
    WATCHER.set(Some(watcher));
    with(Watcher::connect);
}

/// Returns the answer to a question about the session; `None` if no session is being watched.
pub(crate) fn answer(device: usize, query: &Query) -> Option<Answer> {
    WATCHER.with_borrow_mut(|watcher| Some(watcher.as_mut()?.session.answer(device, query)))
}

/// Returns what a device of the session has requested so far; `None` if no session is being watched.
pub(crate) fn requests(device: usize) -> Option<RecordedRequests> {
    WATCHER.with_borrow(|watcher| watcher.as_ref()?.session.requests(device))
}

/// Makes a recording of a what-if run.
pub(crate) fn record(message: &FromWorker, device: usize, name: &str, run: &[u8]) {
    with(|watcher| crate::pack::run(watcher.session.session(), message, device, name, run));
}

/// The page has drawn the last state. `selected` is the allocation that is selected there.
pub(crate) fn drawn(selected: Option<(u32, u32)>) {
    with(|watcher| {
        watcher.is_drawn = true;
        watcher.session.selected = selected;
        watcher.want_refresh();
    });
}

/// Sets the user's own rules.
pub(crate) fn set_rules(rules: &OwnRules) {
    with(|watcher| watcher.session.set_rules(rules));
}

/// Pauses the view, or resumes it. While it is paused, the session stays as the page last saw it, so that no answer
/// contains later events.
pub(crate) fn pause(is_paused: bool) {
    with(|watcher| {
        watcher.is_paused = is_paused;
        watcher.hold();
        watcher.want_refresh();
        // Requests the batches that were skipped meanwhile.
        if !is_paused && watcher.feed.is_paused() {
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

/// Returns the time by this browser's clock, in microseconds since the epoch.
fn clock_us() -> i64 {
    (Date::now() * 1e3) as i64
}

impl Watcher {
    fn connect(&mut self) {
        self.retry = None;
        self.connection = Connection::Connecting;
        self.socket = Socket::open(&self.url, |event| with(|watcher| watcher.handle(event)));
        if self.socket.is_none() {
            self.lost();
        }
        if self.report.is_none() {
            self.report();
        }
    }

    fn handle(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Opened => {
                let hello = self.feed.begin(&self.token);
                self.connection = Connection::Open;
                if let Some(socket) = &self.socket {
                    socket.send(&hello);
                }
                self.send_status();
            }
            SocketEvent::Received(bytes) => self.receive(&bytes),
            SocketEvent::Closed => self.lost(),
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let (began, time_us) = (now(), clock_us());
        let was_caught_up = self.feed.is_caught_up();
        let Self { feed, session, offset, arrived_sent_us, is_stale, .. } = self;
        let (mut unreadable, mut has_arrived) = (None, false);
        let result = feed.push(bytes, &mut |chunks, sent_us| {
            has_arrived = true;
            unreadable = unreadable.take().or(session.push(chunks).err());
            *is_stale = true;
            *arrived_sent_us = sent_us.or(*arrived_sent_us);
            // A batch that waited in the store says nothing about the clocks.
            if let Some(sent_us) = sent_us.filter(|_| was_caught_up) {
                offset.observe(sent_us, time_us);
            }
        });
        if has_arrived {
            // The server says how long ago the newest batch in its store arrived.
            self.waited_us = if was_caught_up { 0 } else { self.feed.status().behind_us.max(0) };
        }
        self.spent_ms += now() - began;
        if self.feed.is_late() {
            self.session.begin_late();
        }
        if self.is_paused && self.session.is_nearly_full() {
            self.feed.pause();
        }
        if let Some(error) = unreadable {
            return self.refuse(error.to_string(), false);
        }
        match result {
            Ok(()) => {
                self.tries = 0;
                self.want_refresh();
                // A session without batches is complete at once.
                self.has_caught_up |= self.feed.is_caught_up() && !self.is_stale;
                if self.feed.is_done() {
                    self.end();
                }
            }
            Err(FeedFault::Refused { message, retry: false, wants_token }) => {
                self.refuse(message, wants_token);
            }
            Err(_) => self.lost(),
        }
    }

    /// Gives up the connection; keeps what has arrived.
    fn refuse(&mut self, message: String, wants_token: bool) {
        self.socket = None;
        self.connection = Connection::Refused { message, wants_token };
        self.send_status();
    }

    /// Ends the connection after everything has arrived.
    fn end(&mut self) {
        self.socket = None;
        self.connection = Connection::Done;
        self.send_status();
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

    /// Counts down the seconds to the next attempt.
    fn wait(&mut self, seconds: u32) {
        self.connection = Connection::Retrying { seconds };
        self.send_status();
        self.retry = Timer::new(1_000, move || {
            with(|watcher| if seconds > 1 { watcher.wait(seconds - 1) } else { watcher.connect() });
        });
    }

    /// Holds the session while the view is paused. The events that the server had at the first request are still
    /// applied.
    fn hold(&mut self) {
        let is_held = self.is_held();
        self.session.hold(is_held);
        if is_held {
            self.refresh = None;
        }
    }

    fn is_held(&self) -> bool {
        self.is_paused && self.has_caught_up
    }

    /// Schedules a new state for the page, if something arrived and the page has drawn the last state.
    fn want_refresh(&mut self) {
        if !self.is_held() && self.is_stale && self.is_drawn && self.refresh.is_none() {
            self.refresh = Timer::new(rest_ms(self.spent_ms) as i32, || with(Self::refresh));
        }
    }

    fn refresh(&mut self) {
        self.refresh = None;
        if self.is_held() {
            return;
        }
        self.is_stale = false;
        let began = now();
        let grown = self.session.refresh();
        self.spent_ms = now() - began;
        // What has arrived counts only once it is part of the session.
        self.has_caught_up |= self.feed.is_caught_up();
        self.hold();
        let Some(grown) = grown else { return self.send_status() };
        let devices = &grown.summary.devices;
        let known = self.held_events + self.dropped_events;
        self.held_events = devices.iter().map(|device| u64::from(device.events)).sum();
        self.dropped_events += grown.trims.iter().map(|trim| u64::from(trim.events)).sum::<u64>();
        // A job that allocates nothing sends statistics nonetheless.
        if self.held_events + self.dropped_events != known {
            self.arrived_us = Some(clock_us().saturating_sub(self.waited_us));
        }
        let newest = devices.iter().filter(|device| device.events > 0 && device.has_times);
        self.newest_us = newest.map(|device| device.start_us.saturating_add(device.span_us)).max();
        self.sent_us = self.arrived_sent_us;
        self.is_drawn = false;
        // The page gets the state before the status says that it has caught up: its first view shows all events.
        post(&FromWorker::Update(Box::new(grown)));
        self.send_status();
    }

    /// Reports the status at regular intervals, for as long as time changes it.
    fn report(&mut self) {
        self.send_status();
        let is_over = self.connection.is_over();
        self.report = if is_over { None } else { Timer::new(REPORT_EVERY_MS, || with(Self::report)) };
    }

    fn send_status(&self) {
        let (status, time_us) = (self.feed.status(), clock_us());
        let behind = lag_us(time_us.saturating_sub(self.offset.us()), self.newest_us, self.sent_us);
        // A watched job has ended once the page has its last events: it would be judged without them.
        let lacks_end = self.has_caught_up && self.is_stale && !self.is_held();
        let state = if lacks_end { SessionState::Live } else { status.state };
        post(&FromWorker::Live(Box::new(LiveStatus {
            state,
            connection: self.connection.clone(),
            is_caught_up: self.has_caught_up,
            behind_us: behind,
            quiet_us: self.arrived_us.map_or(0, |came| time_us.saturating_sub(came).max(0)),
            events: status.events,
            ran_out: state == SessionState::Ended && self.session.ran_out(),
            lost: status.lost_events,
            events_per_second: if status.state == SessionState::Live { self.feed.events_per_second() } else { 0.0 },
            held_events: self.held_events,
            held_bytes: self.session.bytes(),
            limit_events: LiveLimits::default().events as u64,
            dropped_events: self.dropped_events,
            is_late: self.feed.is_late(),
            missed: self.feed.missed().cloned(),
            held_back_events: if self.is_paused { self.session.waiting() } else { 0 },
            waiting_events: self.feed.waiting_events(),
        })));
    }
}
