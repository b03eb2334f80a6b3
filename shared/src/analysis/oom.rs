//! Why a request failed: was the device full, or was enough memory free in pieces too small?

use std::fmt;

use crate::allocator::rounding::{LARGE_BUFFER, SMALL_SIZE, segment_size};
use crate::event::Action;
use crate::replay::Replay;
use crate::trace::{DeviceTrace, Tags};
use crate::units::Bytes;

/// What stood in the way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// All memory that was not in use, cached and free together, was less than the request.
    Full,
    /// Enough memory was free in total, but no piece was large enough.
    Fragmented,
    /// A gap was large enough, but in a pool or on a stream that the request could not use.
    OutOfReach,
    /// The driver had enough free memory: a limit stood in the way.
    Limited,
}

/// A failed request and the state in which it failed. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The position right after the event.
    pub position: u32,
    /// The size of the request, rounded.
    pub requested: u64,
    /// What the driver was asked for: the segment that such a request needs, with the default `large_segment_size_mb`.
    /// For an expandable segment this is the request alone, since it needs less if the segment's end is free.
    pub taken: u64,
    /// What the driver had free.
    pub driver_free: u64,
    /// Reserved and in no active block, on the whole device.
    pub cached: u64,
    /// In active blocks.
    pub active: u64,
    /// The largest gap that the request could have used: of its stream, its pool and its kind of size.
    pub usable_gap: u64,
    /// The largest gap on the device.
    pub largest_gap: u64,
}

impl OutOfMemory {
    /// Describes the failure of the event at `position - 1`; `None` if it is not an out-of-memory event.
    pub fn at(trace: &DeviceTrace, tags: &Tags, replay: &Replay, position: u32) -> Option<Self> {
        let event = trace.events.get((position as usize).checked_sub(1)?)?;
        if event.action != Action::Oom {
            return None;
        }
        let state = replay.state_at(position);
        let tag = tags.get(event.tag);
        let is_small = event.size <= SMALL_SIZE;
        let usable = state.ranges.iter().enumerate().filter(|(_, range)| {
            range.stream == tag.stream && range.is_small == is_small && range.pool == tag.pool.unwrap_or_default()
        });
        let grows = usable.clone().any(|(_, range)| range.is_expandable);
        let gaps = usable.flat_map(|(i, _)| state.gaps_in(i, &replay.allocations));
        Some(Self {
            position,
            requested: event.size,
            taken: if grows { event.size } else { segment_size(event.size, LARGE_BUFFER) },
            driver_free: event.address.0,
            cached: state.totals.cached,
            active: state.totals.active,
            usable_gap: gaps.map(|gap| gap.size).max().unwrap_or(0),
            largest_gap: state.totals.largest_gap,
        })
    }

    /// Returns the failure from the view of a process that may use only `capacity` bytes: free memory of the device
    /// beyond that is out of its reach.
    #[must_use]
    pub fn limited_to(self, capacity: u64) -> Self {
        let reserved = self.active.saturating_add(self.cached);
        Self { driver_free: self.driver_free.min(capacity.saturating_sub(reserved)), ..self }
    }

    /// Returns what stood in the way.
    pub fn cause(&self) -> Cause {
        if self.driver_free >= self.taken {
            Cause::Limited
        } else if self.largest_gap >= self.requested && self.usable_gap < self.requested {
            Cause::OutOfReach
        } else if self.cached >= self.requested || self.cached.saturating_add(self.driver_free) >= self.taken {
            Cause::Fragmented
        } else {
            Cause::Full
        }
    }
}

/// Writes one or two sentences for a person.
impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [asked, free, cached, active] = [self.requested, self.driver_free, self.cached, self.active].map(Bytes);
        write!(f, "Asked for {asked}")?;
        // Mentioned only if it matters, because the request alone would have fitted.
        if (self.requested..self.taken).contains(&self.driver_free) {
            write!(f, ", for which the allocator takes a segment of {}", Bytes(self.taken))?;
        }
        write!(f, "; the driver had {free} free. ")?;
        match self.cause() {
            Cause::Full if self.cached == 0 => {
                write!(f, "All reserved memory was in use ({active}): the device was full.")
            }
            Cause::Full => {
                write!(f, "Only {cached} of reserved memory was free and {active} was in use: the device was full.")
            }
            Cause::Fragmented if self.cached >= self.requested => write!(
                f,
                "{cached} of reserved memory was free, but the largest contiguous block was {}: too fragmented for {asked}.",
                Bytes(self.usable_gap)
            ),
            // Neither cached nor free memory alone was enough.
            Cause::Fragmented => write!(
                f,
                "{cached} of reserved memory was free, but the largest contiguous block was {}. With the driver's \
                 free memory it would have been enough if it had been contiguous; {active} was in use, so the device \
                 was nearly full and fragmented.",
                Bytes(self.usable_gap)
            ),
            Cause::OutOfReach => write!(
                f,
                "{cached} of reserved memory was free with a contiguous block of {}, but in another pool or on another \
                 stream; the largest contiguous block that the request could use was {}.",
                Bytes(self.largest_gap),
                Bytes(self.usable_gap)
            ),
            Cause::Limited => write!(
                f,
                "That was enough, so a limit stood in the way (such as set_per_process_memory_fraction), or memory was \
                 freed in the meantime; {active} was in use."
            ),
        }
    }
}

/// Returns the positions right after out-of-memory events, and the rounded bytes of the requests.
pub fn positions(trace: &DeviceTrace) -> Vec<(u32, u64)> {
    positions_from(trace, 0).collect()
}

/// Returns the position right after the failure that matters most: the last, if the program allocated nothing after it
/// and so ended with it; otherwise the first, as the program caught its failures.
pub fn decisive_position(trace: &DeviceTrace) -> Option<u32> {
    let failures = positions(trace);
    let (last, _) = *failures.last()?;
    let mut later = trace.events.action.range(last as usize..trace.events.len());
    let is_end = !later.any(|action| action == Action::Alloc as u8);
    if is_end { Some(last) } else { failures.first().map(|(position, _)| *position) }
}

/// Returns the positions right after the out-of-memory events from event `start` on, and the rounded bytes of the
/// requests.
pub fn positions_from(trace: &DeviceTrace, start: usize) -> impl Iterator<Item = (u32, u64)> {
    let actions = trace.events.action.range(start..trace.events.len());
    let failed = (start..).zip(actions).filter(|(_, action)| *action == Action::Oom as u8);
    failed.filter_map(|(i, _)| Some((u32::try_from(i + 1).ok()?, trace.events.size.get(i)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_follows_from_what_was_free_where() {
        let with_segment = |taken, requested, driver_free, cached, usable_gap, largest_gap| {
            let (position, active) = (1, 100);
            let oom = OutOfMemory { position, requested, taken, driver_free, cached, active, usable_gap, largest_gap };
            (oom.cause(), oom.to_string())
        };
        let case = |requested, driver_free, cached, usable_gap, largest_gap| {
            with_segment(requested, requested, driver_free, cached, usable_gap, largest_gap)
        };
        assert_eq!(case(10, 2, 3, 3, 3).0, Cause::Full);
        assert_eq!(case(10, 2, 8, 7, 7).0, Cause::Fragmented);
        assert_eq!(case(10, 2, 30, 7, 12).0, Cause::OutOfReach);
        assert_eq!(case(10, 12, 0, 0, 0).0, Cause::Limited);
        // Enough for the request, but not for the segment that it needs.
        assert_eq!(with_segment(20, 4, 12, 0, 0, 0).0, Cause::Full);
        assert_eq!(with_segment(20, 4, 12, 8, 2, 2).0, Cause::Fragmented);
        assert_eq!(with_segment(20, 4, 2, 8, 2, 2).0, Cause::Fragmented);
        assert!(
            with_segment(10, 10, 2, 8, 7, 7)
                .1
                .ends_with("100 B was in use, so the device was nearly full and fragmented.")
        );
        assert_eq!(with_segment(20, 4, 20, 0, 0, 0).0, Cause::Limited);
        assert_eq!(
            with_segment(20 << 20, 4 << 20, 12 << 20, 0, 0, 0).1,
            "Asked for 4.00 MiB, for which the allocator takes a segment of 20.0 MiB; the driver had 12.0 MiB free. All \
             reserved memory was in use (100 B): the device was full."
        );
        assert_eq!(
            case(2 << 30, 1 << 29, 5 << 30, 3 << 29, 3 << 29).1,
            "Asked for 2.00 GiB; the driver had 512 MiB free. 5.00 GiB of reserved memory was free, but the largest \
             contiguous block was 1.50 GiB: too fragmented for 2.00 GiB."
        );
    }

    #[test]
    fn the_last_failure_is_decisive_if_it_ended_the_program() {
        let decisive = |rest: &str| {
            let lines = format!("alloc 0x1000000 1000\noom 100 5000\nalloc 0x1100000 300\noom 100 7000\n{rest}");
            decisive_position(&crate::testing::snapshot(&lines).devices[0])
        };
        assert_eq!(decisive(""), Some(4));
        assert_eq!(decisive("free 0x1000000"), Some(4));
        assert_eq!(decisive("alloc 0x1200000 300"), Some(2));
        assert_eq!(decisive_position(&DeviceTrace::default()), None);
    }

    #[test]
    fn only_gaps_that_the_request_could_use_count() {
        let cause = |lines: &str| {
            let mut snapshot = crate::testing::snapshot(lines);
            let trace = snapshot.devices.remove(0);
            let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
            let (position, _) = positions(&trace)[0];
            assert_eq!(OutOfMemory::at(&trace, &snapshot.tags, &replay, position - 1), None);
            OutOfMemory::at(&trace, &snapshot.tags, &replay, position).map(|oom| oom.cause())
        };
        let reserved = "segment_alloc 0x1000000 20971520";
        assert_eq!(cause(&format!("{reserved}\noom 100 20971520 stream=7")), Some(Cause::OutOfReach));
        assert_eq!(cause(&format!("{reserved} pool=1\noom 100 20971520")), Some(Cause::OutOfReach));
        assert_eq!(cause(&format!("{reserved}\noom 3000000 20971521")), Some(Cause::Fragmented));
        assert_eq!(cause(&format!("{reserved}\noom 100 30000000")), Some(Cause::Full));
        assert_eq!(cause(&format!("{reserved}\noom 40000000 30000000")), Some(Cause::Limited));
    }
}
