//! Polls the server for its sessions once a second while the list is on the screen.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use wasm_bindgen_futures::spawn_local;
use web_sys::VisibilityState;
use yew::functional::UseStateSetter;

use super::session_row::{SessionInfo, row_id};
use super::sparkline::Sparkline;
use crate::browser::{Timeout, clock_ms, document, window};
use crate::source::server::{self, Failure};

/// Milliseconds between an answer and the next request.
const EVERY_MS: i32 = 1_000;
/// Milliseconds after which the sparkline of a live session is out of date.
const SPARK_MS: f64 = 3_000.0;
/// Sparklines requested per turn.
const SPARKS: usize = 16;
/// Maximum number of sessions listed.
const MOST: usize = 200;

/// The server's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Listing {
    /// Not asked yet, or there is no such server: nothing is shown.
    #[default]
    Absent,
    /// The server requires a token.
    Token {
        /// Whether a wrong token was sent.
        is_wrong: bool,
    },
    /// The sessions: live ones first, then by age, newest first.
    Sessions(Rc<[SessionInfo]>),
    /// The server no longer answers: its last sessions.
    Away(Rc<[SessionInfo]>),
}

impl Listing {
    /// Returns the known sessions.
    pub fn sessions(&self) -> &[SessionInfo] {
        match self {
            Self::Sessions(sessions) | Self::Away(sessions) => sessions,
            _ => &[],
        }
    }
}

/// A running poll, ended when dropped.
pub struct Poll(Rc<Inner>);

struct Inner {
    set: UseStateSetter<Listing>,
    last: RefCell<Listing>,
    sparks: RefCell<HashMap<String, (f64, Option<Sparkline>)>>,
    timer: RefCell<Option<Timeout>>,
    is_over: Cell<bool>,
}

impl Drop for Poll {
    fn drop(&mut self) {
        self.0.is_over.set(true);
        self.0.timer.borrow_mut().take();
    }
}

impl Poll {
    /// Starts polling.
    pub fn start(set: UseStateSetter<Listing>) -> Self {
        let inner = Rc::new(Inner {
            set,
            last: RefCell::default(),
            sparks: RefCell::default(),
            timer: RefCell::default(),
            is_over: Cell::new(false),
        });
        turn(Rc::clone(&inner));
        Self(inner)
    }
}

fn turn(inner: Rc<Inner>) {
    if document().visibility_state() == VisibilityState::Hidden {
        return later(&inner);
    }
    spawn_local(async move {
        let listing = match server::get("sessions").await {
            Ok(answer) => {
                let mut sessions: Vec<_> = answer.list("sessions").iter().map(SessionInfo::of).collect();
                sessions.sort_by_key(|session| !session.is_live());
                sessions.truncate(MOST);
                Listing::Sessions(sessions.into())
            }
            Err(Failure::Token) => Listing::Token { is_wrong: !server::token().is_empty() },
            Err(_) => match inner.last.take() {
                Listing::Sessions(sessions) | Listing::Away(sessions) => Listing::Away(sessions),
                _ => Listing::Absent,
            },
        };
        inner.tell(listing.clone());
        if let Listing::Sessions(sessions) = listing {
            for session in inner.without_spark(&sessions) {
                if inner.is_over.get() {
                    break;
                }
                let stats = server::get(&format!("sessions/{session}/stats")).await;
                let spark = stats.ok().and_then(|stats| fullest(&stats));
                inner.sparks.borrow_mut().insert(session, (clock_ms(), spark));
                inner.tell(Listing::Sessions(Rc::clone(&sessions)));
            }
        }
        // Without such a server (a folder, or a static host) polling stops.
        if *inner.last.borrow() != Listing::Absent {
            later(&inner);
        }
    });
}

fn later(inner: &Rc<Inner>) {
    if !inner.is_over.get() {
        let next = Rc::clone(inner);
        let timer = Timeout::new(EVERY_MS, move || turn(next));
        *inner.timer.borrow_mut() = Some(timer);
    }
}

/// Returns the sparkline of the device that reserved most.
fn fullest(stats: &server::Json) -> Option<Sparkline> {
    let devices = stats.list("devices");
    let sparks = devices.iter().filter_map(|device| {
        let points: Vec<Vec<f64>> = device.list("points").iter().map(server::Json::numbers).collect();
        Sparkline::of(&points, device.is("peaks_are_exact"))
    });
    sparks.max_by(|a, b| a.peak.total_cmp(&b.peak))
}

impl Inner {
    fn tell(&self, mut listing: Listing) {
        if let Listing::Sessions(sessions) = &mut listing {
            let sparks = self.sparks.borrow();
            let with = sessions.iter().cloned().map(|mut session| {
                session.spark = sparks.get(&session.id).and_then(|(_, spark)| spark.clone());
                session
            });
            *sessions = with.collect();
        }
        *self.last.borrow_mut() = listing.clone();
        if !self.is_over.get() {
            self.set.set(listing);
        }
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
