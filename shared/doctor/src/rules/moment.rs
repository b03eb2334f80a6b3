//! The moments at which fragmentation counts: no cached memory served a request.

use super::survey::Miss;
use crate::{Case, pool};
use allocator::rounding::SMALL_SIZE;
use query::{pool_name, stream_name};
use replay::{Allocation, AllocatorState, Gap, ReservedRange};
use trace::frames::StackId;
use trace::units::{Bytes, Count, PoolId, Stream};

/// The outcome of a moment's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The request failed.
    Failed,
    /// The driver served it, which made reserved memory as large as it ever was.
    Peak,
    /// The driver served it.
    Served,
    /// No request: it is the only state that is known.
    End,
}

/// A request that no cached memory served, with the state before the driver was asked.
pub(super) struct MissMoment {
    pub(super) outcome: Outcome,
    pub(super) state: AllocatorState,
    /// The size of its block.
    pub(super) size: u64,
    /// Bytes taken from the driver for it: less than its size if an expandable segment's last gap grew.
    pub(super) taken: u64,
    /// Bytes that the driver had free when it failed; 0 if it was served.
    pub(super) driver_free: u64,
    /// Its call site.
    pub(super) stack: StackId,
    pub(super) pool: PoolId,
    stream: Stream,
    is_small: bool,
}

/// Gaps in segments that are partly in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SplitGaps {
    pub(super) bytes: u64,
    pub(super) count: u64,
    pub(super) largest: Option<Gap>,
    /// The bytes of the largest gap at the end of an expandable segment, which is none of the gaps above; 0 if there is none.
    pub(super) at_end: u64,
}

impl MissMoment {
    /// Returns the moment of the request that failed right before `position`.
    pub(super) fn failed(case: &Case<'_>, position: u32) -> Option<Self> {
        let event = case.trace.events.get((position as usize).checked_sub(1)?)?;
        let tag = case.tags.get(event.tag);
        let state = case.replay.state_at(position);
        let (pool, _) = pool::of_request(case, tag, &state);
        Some(Self {
            outcome: Outcome::Failed,
            state,
            size: event.size,
            taken: 0,
            driver_free: event.address.0,
            stack: event.stack,
            pool,
            stream: tag.stream,
            is_small: event.size <= SMALL_SIZE,
        })
    }

    /// Returns the end of a trace, with no request.
    pub(super) fn end(case: &Case<'_>) -> Self {
        Self {
            outcome: Outcome::End,
            state: case.replay.state_at(u32::MAX),
            size: 0,
            taken: 0,
            driver_free: 0,
            stack: StackId(0),
            pool: PoolId::default(),
            stream: Stream::default(),
            is_small: false,
        }
    }

    /// Returns the moment of a request that the driver served.
    pub(super) fn of(case: &Case<'_>, miss: Miss, outcome: Outcome) -> Option<Self> {
        let allocation = case.replay.allocations.get(miss.allocation)?;
        Some(Self {
            outcome,
            state: case.replay.state_at(miss.position),
            size: allocation.size,
            taken: miss.taken,
            driver_free: 0,
            stack: allocation.stack,
            pool: case.replay.pool(&allocation),
            stream: case.tags.get(allocation.tag).stream,
            is_small: allocation.flags & Allocation::FLAG_SMALL != 0,
        })
    }

    /// Returns whether the request could use a range's memory.
    pub(super) fn can_use(&self, range: &ReservedRange) -> bool {
        (range.pool, range.stream, range.is_small) == (self.pool, self.stream, self.is_small)
    }

    /// Returns whether the request could use a range's memory, but for its stream and pool.
    pub(super) fn matches_kind(&self, range: &ReservedRange) -> bool {
        range.is_small == self.is_small
    }

    /// Returns the request's stream and pool in words.
    pub(super) fn place(&self, case: &Case<'_>) -> String {
        place(case, self.stream, self.pool)
    }

    /// Returns the gaps that the request could have used if they had been larger. The last gap of an expandable segment
    /// doesn't count: it grows by what a request lacks.
    pub(super) fn split_gaps(&self, case: &Case<'_>) -> SplitGaps {
        let mut found = SplitGaps::default();
        let ranges = self.state.ranges.iter().enumerate();
        for (i, range) in ranges.filter(|(i, range)| self.can_use(range) && !self.state.active_in(*i).is_empty()) {
            let gaps = self.state.gaps_in(i, &case.replay.allocations);
            for gap in gaps {
                if range.is_expandable && gap.end() == range.end() {
                    found.at_end = found.at_end.max(gap.size);
                    continue;
                }
                found.bytes = found.bytes.saturating_add(gap.size);
                found.count += 1;
                if found.largest.is_none_or(|largest| largest.size < gap.size) {
                    found.largest = Some(gap);
                }
            }
        }
        found
    }

    /// Returns a description of the moment: `Before reserved memory rose to its peak (after event 7)`.
    pub(super) fn description(&self) -> String {
        let (position, size) = (Count(self.state.position.into()), Bytes(self.size));
        match self.outcome {
            Outcome::Failed => format!("When the request of {size} failed (event {position})"),
            Outcome::Peak => format!("Before reserved memory rose to its peak (after event {position})"),
            Outcome::Served => {
                format!("When {} was reserved (after event {position})", Bytes(self.state.totals.reserved))
            }
            Outcome::End => "When the snapshot was taken".to_owned(),
        }
    }
}

/// Returns a stream and pool in words, with the names that they have everywhere: `stream 7`, `the default stream of pool (0, 1)`.
pub(super) fn place(case: &Case<'_>, stream: Stream, pool: PoolId) -> String {
    let the = if stream == Stream::default() { "the " } else { "" };
    let stream = format!("{the}{}", stream_name(stream, &case.replayed().streams()));
    if pool.is_private() { format!("{stream} of {}", pool_name(pool)) } else { stream }
}
