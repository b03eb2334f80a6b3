//! The session that is being watched. Finds the selected allocation again when the oldest events are dropped.

use format::import::ImportError;
use query::own_rules::OwnRules;
use query::{AllocationQuery, Answer, EventFilter, EventOrder, EventsQuery, Query};
use session::{LiveSession, RecordedRequests};
use trace::limits::LiveLimits;

use protocol::message::{Failed, MovedSelection, Trim, Update};

/// The share (one in so many) of the events a page may hold that stays free while the view is paused: more than arrives
/// at once.
const FREE_SHARE: usize = 8;

/// A session and the selection in it.
pub struct WatchedSession {
    session: LiveSession,
    /// The selected allocation: its device's index, and its number.
    pub selected: Option<(u32, u32)>,
}

impl Default for WatchedSession {
    fn default() -> Self {
        Self { session: LiveSession::new(LiveLimits::default()), selected: None }
    }
}

impl WatchedSession {
    /// Reads the chunks of a batch.
    pub fn push(&mut self, chunks: &[u8]) -> Result<(), ImportError> {
        self.session.push(chunks)
    }

    /// Declares that the first events are missing.
    pub fn begin_late(&mut self) {
        self.session.begin_late();
    }

    /// Extends the session by what was read. Returns what changed; `None` if nothing did.
    pub fn refresh(&mut self) -> Option<Update> {
        let before = self.selected.and_then(|(device, id)| {
            let identity = self.identity(device, id)?;
            Some((device, id, identity))
        });
        let grown = self.session.refresh()?;
        let mut trims = Vec::new();
        for trimmed in &grown.trimmed {
            if trims.len() <= trimmed.device {
                trims.resize(trimmed.device + 1, Trim::default());
            }
            if let Some(trim) = trims.get_mut(trimmed.device) {
                *trim = Trim { events: trimmed.events, us: trimmed.span_us as f64 };
            }
        }
        let kept = before.and_then(|(device, was, identity)| {
            let events = trims.get(device as usize).filter(|trim| trim.events > 0)?.events;
            Some(MovedSelection { device, was, is: self.find(device, identity, events) })
        });
        let oom = grown.oom.map(|(device, position)| Failed {
            device: device as u32,
            position,
            why: self.session.why_out_of_memory(device, position),
        });
        Some(Update { summary: self.session.summary().clone(), trims, kept, oom })
    }

    /// Names and colours call sites by other rules.
    pub fn set_rules(&mut self, rules: &OwnRules) {
        self.session.session().set_own_rules(rules);
    }

    /// Returns the answer to a question about one device.
    pub fn answer(&mut self, device: usize, query: &Query) -> Answer {
        self.session.answer(device, query)
    }

    /// Returns what has arrived.
    pub fn session(&mut self) -> &mut session::Session {
        self.session.session()
    }

    /// Returns the requests of a device so far.
    pub fn requests(&self, device: usize) -> Option<RecordedRequests> {
        self.session.requests(device)
    }

    /// Sets whether the session is held: while it is, new events wait and the page's state doesn't change.
    pub fn hold(&mut self, is_held: bool) {
        self.session.hold(is_held);
    }

    /// Returns the number of events that arrived while the session was held.
    pub fn waiting(&self) -> u64 {
        self.session.waiting() as u64
    }

    /// Returns whether a paused view should stop receiving: the oldest events would be dropped soon, or many events
    /// wait.
    pub fn is_nearly_full(&self) -> bool {
        self.session.room() < LiveLimits::default().events / FREE_SHARE || self.session.holds_much()
    }

    /// Returns whether the last thing that the program asked of a device failed.
    pub fn ran_out(&self) -> bool {
        self.session.ran_out()
    }

    /// Returns the bytes of memory that the session occupies.
    pub fn bytes(&self) -> u64 {
        self.session.bytes() as u64
    }

    /// Returns what identifies an allocation when numbers change.
    fn identity(&mut self, device: u32, id: u32) -> Option<AllocationIdentity> {
        match self.session.answer(device as usize, &Query::Allocation(AllocationQuery { id })) {
            Answer::Allocation(detail) => {
                Some(AllocationIdentity { address: detail.address.0, allocated_at: detail.allocated_at })
            }
            _ => None,
        }
    }

    /// Returns the new number of an allocation after `events` events were dropped; `None` if it was dropped too.
    fn find(&mut self, device: u32, identity: AllocationIdentity, events: u32) -> Option<u32> {
        match identity.allocated_at.and_then(|at| at.checked_sub(events)).filter(|at| *at > 0) {
            Some(at) => self.allocated_by(device, at),
            None => self.live_at_start(device, identity.address),
        }
    }

    /// Returns the allocation that the event before `position` made.
    fn allocated_by(&mut self, device: u32, position: u32) -> Option<u32> {
        let mut rows = |first, count, locate| {
            let query = Query::Events(EventsQuery {
                order: EventOrder::default(),
                filter: EventFilter::default(),
                first,
                count,
                locate,
            });
            match self.session.answer(device as usize, &query) {
                Answer::Events(rows) => Some(rows),
                _ => None,
            }
        };
        let row = rows(0, 0, position)?.located?;
        rows(row, 1, 0)?.rows.first()?.event()?.allocation
    }

    /// Returns the allocation at `address` that existed at the start. Those come first, sorted by address.
    fn live_at_start(&mut self, device: u32, address: u64) -> Option<u32> {
        let count = self.session.summary().devices.get(device as usize)?.allocations;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            let identity = self.identity(device, middle)?;
            if identity.allocated_at.is_none() && identity.address < address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let found = if low < count { self.identity(device, low)? } else { return None };
        (found.allocated_at.is_none() && found.address == address).then_some(low)
    }
}

/// Identifies an allocation.
#[derive(Clone, Copy)]
struct AllocationIdentity {
    address: u64,
    /// The position right after it was made; `None` if it existed before the trace.
    allocated_at: Option<u32>,
}
