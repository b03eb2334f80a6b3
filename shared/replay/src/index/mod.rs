//! Indexes over a trace: what is computed once, extended by later events, and trimmed from the front.
//!
//! # Why
//! A file is a session that has ended. A dropped file and a running job give the same answers, so each index is written
//! once, as [`Index::extend`]. Everything else follows from it:
//!
//! - **Building** is extending from nothing: [`Index::build`].
//! - **Trimming** is extending a copy. When a running job exceeds its limit, the older half of its events is dropped.
//!   Peaks and areas cannot be subtracted, so the events to keep are indexed again, a slice at each refresh, before
//!   the limit is reached. [`TrimmedCopy`] does that for every index, and taking the copy's place takes an instant.
//!
//! # Kinds of indexes
//! ```text
//! IndexInput ─► Replay ─► Replayed ─► Usage, Facts, …     for each device, extended at each refresh
//!                                └► RunningTotals, …    for each device, extended when a question needs them
//!                                └► Coloring, …         for each question, the last few kept: RecentCache
//! ```
//! The input is what an index is built from: [`IndexInput`] is the trace as it was recorded,
//! [`Replayed`](crate::Replayed) adds the allocator's states.
//!
//! # Adding an index
//! Derive `Default`, remember how far the trace was read, implement `extend` and `bytes` for `Index<Replayed<'_>>`, and
//! add the field to `session::Indexes`. Files, running jobs and trimming need nothing more. The tests in
//! `shared/session/tests/properties/live` compare a session that grew in pieces with one that was built at once.
//!
//! # Rules
//! - An index remembers how far it has read, and `extend` adds only what follows. Its cost is proportional to that.
//! - Events never change once they are part of a trace. An index whose earlier results can change (a lifetime, which is
//!   known at its end) starts over inside `extend`; callers need not know.
//! - `extend` after `build` gives what a single `build` gives.
//!
//! # The exception
//! [`Replay`](crate::Replay) overrides `build`, not for speed but because it has more to go on: a snapshot's segments
//! are those of its end, and the start is found by going back from there. Extending can only go forward from a known
//! state. Where a trace begins with a known state and misses no event, both give the same;
//! `shared/session/tests/properties/live` compares them, and `shared/session/benches/{live,session}.rs` measure both.

mod recent_cache;
mod trimmed;

pub use recent_cache::RecentCache;
pub use trimmed::TrimmedCopy;

use trace::{DeviceTrace, Segment, Settings, Tags};

/// A result that is computed from an `Input` and extended as the input grows.
pub trait Index<Input>: Default {
    /// Adds what the input has beyond what was added before.
    fn extend(&mut self, input: Input);

    /// Builds the index of a whole input.
    fn build(input: Input) -> Self {
        let mut new = Self::default();
        new.extend(input);
        new
    }

    /// Returns the approximate memory use in bytes.
    fn bytes(&self) -> usize;
}

/// The state of a device at one position, as it was recorded.
#[derive(Clone, Debug)]
pub struct KnownState {
    /// The position. The state takes effect with the event after it.
    pub position: u32,
    /// The segments with their blocks.
    pub segments: Vec<Segment>,
}

/// A device's trace as it was recorded: the input of indexes that do not need the allocator's states.
#[derive(Debug)]
pub struct IndexInput<'a> {
    /// The trace.
    pub trace: &'a DeviceTrace,
    /// The tags of its events. Blocks that no event made are given tags too.
    pub tags: &'a mut Tags,
    /// The allocator's settings for the events that are added.
    pub settings: &'a Settings,
    /// States among the events that are added, by position.
    pub states: Vec<KnownState>,
}
