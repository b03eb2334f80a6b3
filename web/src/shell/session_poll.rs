//! Polls the server for its sessions while the list is on the screen: once a second, and less often while nothing changes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use trace::order::SortFew;

use wasm_bindgen_futures::spawn_local;
use web_sys::VisibilityState;
use yew::functional::UseStateSetter;

use super::session_row::{SessionInfo, row_id};
use super::sparkline::Sparkline;
use crate::browser::{Listener, Timeout, clock_ms, document, window};
use crate::source::http;
use crate::source::json::Json;
use crate::source::server::{self, Failure, rest_ms};

/// Milliseconds after which the sparkline of a live session is out of date.
const SPARK_MS: f64 = 3_000.0;
/// Sparklines requested per turn.
const SPARKS: usize = 16;
/// The number of sessions listed at first, and how many more at a time.
pub const PAGE: usize = 200;
/// The most sessions listed: the server sends no more at once.
pub const MOST: usize = 1_000;

/// The server's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Listing {
    /// Not asked yet, or there is no such server: nothing is shown.
    #[default]
    Absent,
    /// The server requires a token.
    Token {
        /// Why the token that was sent is not enough, as a sentence; empty if none was sent.
        reason: String,
    },
    /// The newest sessions.
    Shown(Page),
    /// The server no longer answers: its last sessions.
    Away(Page),
}

/// The first page of the server's list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Live sessions first, then by age, newest first.
    pub sessions: Rc<[SessionInfo]>,
    /// The number of sessions that the server has.
    pub total: u64,
    /// Whether the server still looks through its store.
    pub is_loading: bool,
    /// The roles in which the user may act.
    pub roles: Rc<[String]>,
    /// Whether the user may pin and delete sessions.
    pub may_manage: bool,
}

impl Listing {
    /// Returns the known sessions.
    pub fn sessions(&self) -> &[SessionInfo] {
        match self {
            Self::Shown(page) | Self::Away(page) => &page.sessions,
            _ => &[],
        }
    }

    /// Returns whether the user may act in a role, as far as the server has said.
    pub fn may(&self, role: &str) -> bool {
        matches!(self, Self::Shown(page) | Self::Away(page) if page.roles.iter().any(|own| own == role))
    }

    /// Returns whether the user may pin and delete sessions, as far as the server has said.
    pub fn may_manage(&self) -> bool {
        matches!(self, Self::Shown(page) | Self::Away(page) if page.may_manage)
    }
}

/// A running poll, ended when dropped.
pub struct Poll {
    inner: Rc<Inner>,
    _shown: Listener,
}

struct Inner {
    set: UseStateSetter<Listing>,
    limit: usize,
    last: RefCell<Listing>,
    sparks: RefCell<HashMap<String, (f64, Option<Sparkline>)>>,
    timer: RefCell<Option<Timeout>>,
    /// The number of answers in a row that said the same.
    same: Cell<usize>,
    is_over: Cell<bool>,
}

impl Drop for Poll {
    fn drop(&mut self) {
        self.inner.is_over.set(true);
        self.inner.timer.borrow_mut().take();
    }
}

impl Poll {
    /// Starts polling the newest `limit` sessions.
    pub fn start(set: UseStateSetter<Listing>, limit: usize) -> Self {
        let inner = Rc::new(Inner {
            set,
            limit,
            last: RefCell::default(),
            sparks: RefCell::default(),
            timer: RefCell::default(),
            same: Cell::new(0),
            is_over: Cell::new(false),
        });
        turn(Rc::clone(&inner));
        let hidden = Rc::clone(&inner);
        let shown = Listener::new(&document(), "visibilitychange", move |_| turn(Rc::clone(&hidden)));
        Self { inner, _shown: shown }
    }

    /// Asks at once: something has changed.
    pub fn hurry(&self) {
        turn(Rc::clone(&self.inner));
    }
}

fn turn(inner: Rc<Inner>) {
    // A page that is shown again asks at once.
    if inner.is_over.get() || document().visibility_state() == VisibilityState::Hidden {
        return;
    }
    spawn_local(async move {
        let listing = match server::get(&format!("sessions?limit={}", inner.limit)).await {
            Ok(answer) => {
                let mut sessions: Vec<_> = answer.list("sessions").iter().map(SessionInfo::of).collect();
                sessions.sort_few_by_key(|session| !session.is_live());
                let total = answer.number("total").map_or(sessions.len() as u64, |total| total as u64);
                Listing::Shown(Page {
                    sessions: sessions.into(),
                    total,
                    is_loading: answer.is("loading"),
                    roles: answer.texts("roles").into(),
                    may_manage: answer.is("may_manage"),
                })
            }
            Err(Failure::Token(_)) if http::token().is_empty() => Listing::Token { reason: String::new() },
            Err(Failure::Token(reason)) => Listing::Token { reason },
            Err(_) => match &*inner.last.borrow() {
                Listing::Shown(page) | Listing::Away(page) => Listing::Away(page.clone()),
                _ => Listing::Absent,
            },
        };
        let is_same = inner.tell(listing.clone());
        // While the server looks through its store, more come.
        let is_settled = is_same && !matches!(&listing, Listing::Shown(page) if page.is_loading);
        inner.same.set(if is_settled { inner.same.get().saturating_add(1) } else { 0 });
        if let Listing::Shown(page) = listing {
            for session in inner.without_spark(&page.sessions) {
                if inner.is_over.get() {
                    break;
                }
                let stats = server::get(&format!("sessions/{session}/stats")).await;
                let spark = stats.ok().and_then(|stats| fullest(&stats));
                inner.sparks.borrow_mut().insert(session, (clock_ms(), spark));
                inner.tell(Listing::Shown(page.clone()));
            }
        }
        // Without such a server (a folder, or a static host) polling stops.
        if *inner.last.borrow() == Listing::Absent {
            inner.is_over.set(true);
        }
        later(&inner);
    });
}

fn later(inner: &Rc<Inner>) {
    if !inner.is_over.get() {
        let next = Rc::clone(inner);
        let timer = Timeout::new(rest_ms(inner.same.get()), move || turn(next));
        *inner.timer.borrow_mut() = Some(timer);
    }
}

/// Returns the sparkline of the device that reserved most.
fn fullest(stats: &Json) -> Option<Sparkline> {
    let devices = stats.list("devices");
    let sparks = devices.iter().filter_map(|device| {
        let points: Vec<Vec<f64>> = device.list("points").iter().map(Json::numbers).collect();
        Sparkline::of(&points, device.is("peaks_are_exact"))
    });
    sparks.max_by(|a, b| a.peak.total_cmp(&b.peak))
}

impl Inner {
    /// Shows a listing. Returns whether it is the last one.
    fn tell(&self, mut listing: Listing) -> bool {
        if let Listing::Shown(page) = &mut listing {
            let sparks = self.sparks.borrow();
            let with = page.sessions.iter().cloned().map(|mut session| {
                session.spark = sparks.get(&session.id).and_then(|(_, spark)| spark.clone());
                session
            });
            page.sessions = with.collect();
        }
        let last = self.last.replace(listing.clone());
        let is_same = last == listing;
        if !self.is_over.get() {
            self.set.set(listing);
        }
        is_same
    }

    /// Returns the visible sessions whose sparkline is missing or out of date.
    fn without_spark(&self, sessions: &[SessionInfo]) -> Vec<String> {
        let (now, sparks) = (clock_ms(), self.sparks.borrow());
        let is_due = |session: &&SessionInfo| match sparks.get(&session.id) {
            None => true,
            Some((then, _)) => session.is_live() && now - then > SPARK_MS,
        };
        sessions.iter().filter(is_due).filter(|s| is_on_screen(&s.id)).take(SPARKS).map(|s| s.id.clone()).collect()
    }
}

fn is_on_screen(session: &str) -> bool {
    let height = window().inner_height().ok().and_then(|height| height.as_f64()).unwrap_or(0.0);
    document().get_element_by_id(&row_id(session)).is_some_and(|row| {
        let place = row.get_bounding_client_rect();
        place.bottom() > 0.0 && place.top() < height
    })
}
