//! The session that grows, and what is selected in it kept while its oldest events go.

use shared::import::ImportError;
use shared::limits::LiveLimits;
use shared::query::{Answer, EventFilter, Query};
use shared::session::LiveSession;

use protocol::message::{Failed, Kept, Trim, Update};

/// Share of all that may be held which stays free while the picture stands still: more than comes at once.
const ROOM_SHARE: usize = 8;

/// A session and what came of it.
pub struct Growing {
    session: LiveSession,
    /// The allocation that is selected on the page: the device's index, and its number.
    pub selected: Option<(u32, u32)>,
}

impl Default for Growing {
    fn default() -> Self {
        Self { session: LiveSession::new(LiveLimits::default()), selected: None }
    }
}

impl Growing {
    /// Takes the chunks of a batch.
    pub fn push(&mut self, chunks: &[u8]) -> Result<(), ImportError> {
        self.session.push(chunks)
    }

    /// What comes begins later than the session did.
    pub fn begin_late(&mut self) {
        self.session.begin_late();
    }

    /// Puts together what came; nothing where nothing did.
    pub fn refresh(&mut self) -> Option<Update> {
        let before = self.selected.and_then(|(device, id)| {
            let life = self.life(device, id)?;
            Some((device, id, life))
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
        let kept = before.and_then(|(device, was, life)| {
            let events = trims.get(device as usize).filter(|trim| trim.events > 0)?.events;
            Some(Kept { device, was, is: self.find(device, life, events) })
        });
        let oom = grown.oom.map(|(device, position)| Failed {
            device: device as u32,
            position,
            why: self.session.why_out_of_memory(device, position),
        });
        Some(Update { summary: self.session.summary().clone(), trims, kept, oom })
    }

    /// The answer to a question about one device.
    pub fn answer(&mut self, device: usize, query: &Query) -> Answer {
        self.session.answer(device, query)
    }

    /// Whether little more can come before the oldest events go.
    pub fn is_nearly_full(&self) -> bool {
        self.session.room() < LiveLimits::default().events / ROOM_SHARE
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.session.bytes() as u64
    }

    /// What an allocation is known by when numbers change.
    fn life(&mut self, device: u32, id: u32) -> Option<Life> {
        match self.session.answer(device as usize, &Query::Allocation { id }) {
            Answer::Allocation(detail) => Some(Life { address: detail.address.0, allocated_at: detail.allocated_at }),
            _ => None,
        }
    }

    /// The new number of an allocation after so many events were given up; nothing where it went with them.
    fn find(&mut self, device: u32, life: Life, events: u32) -> Option<u32> {
        match life.allocated_at.and_then(|at| at.checked_sub(events)).filter(|at| *at > 0) {
            Some(at) => self.made_at(device, at),
            None => self.held_at_start(device, life.address),
        }
    }

    /// The allocation that the event before a position made.
    fn made_at(&mut self, device: u32, position: u32) -> Option<u32> {
        let mut rows = |first, count, locate| {
            let query = Query::Events { filter: EventFilter::default(), first, count, locate };
            match self.session.answer(device as usize, &query) {
                Answer::Events(rows) => Some(rows),
                _ => None,
            }
        };
        let row = rows(0, 0, position)?.located?;
        rows(row, 1, 0)?.rows.first()?.event()?.allocation
    }

    /// The allocation at an address that was there from the start: those come first, by address.
    fn held_at_start(&mut self, device: u32, address: u64) -> Option<u32> {
        let count = self.session.summary().devices.get(device as usize)?.allocations;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            let life = self.life(device, middle)?;
            if life.allocated_at.is_none() && life.address < address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let found = if low < count { self.life(device, low)? } else { return None };
        (found.allocated_at.is_none() && found.address == address).then_some(low)
    }
}

/// What an allocation is known by.
#[derive(Clone, Copy)]
struct Life {
    address: u64,
    /// The position right after it was made; none for those from before the trace.
    allocated_at: Option<u32>,
}
