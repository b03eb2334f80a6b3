//! The sums of pinned host memory.

use query::HostMemory as Sums;
use trace::event::Action;
use trace::{BlockState, Events, HostMemory};

/// Returns the sums of pinned host memory; `None` if the file says nothing about it.
pub fn sums(host: &HostMemory) -> Option<Sums> {
    if host.is_empty() {
        return None;
    }
    let mut sums = Sums { segments: host.segments.len() as u32, ..Sums::default() };
    for segment in &host.segments {
        sums.reserved_bytes = sums.reserved_bytes.saturating_add(segment.size);
        sums.blocks = sums.blocks.saturating_add(segment.blocks.len() as u32);
        for block in &segment.blocks {
            let sum = match block.state {
                BlockState::Allocated => &mut sums.allocated_bytes,
                BlockState::Pending => &mut sums.waiting_bytes,
                BlockState::Inactive => continue,
            };
            *sum = sum.saturating_add(block.size);
        }
    }
    sums.events = host.events.len() as u64;
    if !host.events.is_empty() {
        let active = sums.allocated_bytes.saturating_add(sums.waiting_bytes);
        sums.peak_active_bytes = Some(peak(&host.events, active, (Action::Alloc, Action::FreeCompleted)));
        let ends = (Action::SegmentAlloc, Action::SegmentFree);
        sums.peak_reserved_bytes = Some(peak(&host.events, sums.reserved_bytes, ends));
    }
    Some(sums)
}

/// Returns the largest sum at any position, of a sum that is `end` after the last event, and that `up` raises and `down`
/// lowers. The events are followed back from the end, because the first ones may be missing.
fn peak(events: &Events, end: u64, (up, down): (Action, Action)) -> u64 {
    let (mut now, mut most) = (end, end);
    for i in (0..events.len()).rev() {
        let Some(event) = events.get(i) else { continue };
        if event.action == up {
            now = now.saturating_sub(event.size);
        } else if event.action == down {
            now = now.saturating_add(event.size);
        }
        most = most.max(now);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns pinned memory with the segments and events of a trace.
    fn host(lines: &str) -> HostMemory {
        let device = trace::testing::snapshot(lines).devices.remove(0);
        HostMemory { segments: device.segments, events: device.events }
    }

    #[test]
    fn sums_and_peaks_are_those_of_blocks_and_events() {
        // Events, then allocated, waiting, reserved, peak in use and peak reserved.
        let cases: &[(&str, [u64; 5])] = &[
            ("segment_alloc 4096 1024\nalloc 4096 1024", [1024, 0, 1024, 1024, 1024]),
            ("segment_alloc 4096 1024\nalloc 4096 1024\nfree 4096 1024", [0, 0, 1024, 1024, 1024]),
            (
                "segment_alloc 4096 1024\nalloc 4096 1024\nfree_requested 4096 1024\nsegment_alloc 65536 512
                 segment_free 65536 512",
                [0, 1024, 1024, 1024, 1536],
            ),
        ];
        for (lines, want) in cases {
            let sums = sums(&host(lines)).expect("sums");
            let got = [sums.allocated_bytes, sums.waiting_bytes, sums.reserved_bytes]
                .into_iter()
                .chain([sums.peak_active_bytes.expect("a peak"), sums.peak_reserved_bytes.expect("a peak")]);
            assert_eq!(got.collect::<Vec<_>>(), want, "{lines}");
        }
        assert_eq!(sums(&HostMemory::default()), None);
    }

    #[test]
    fn without_events_there_is_no_peak() {
        let host = HostMemory { events: Events::default(), ..host("segment_alloc 4096 1024\nalloc 4096 1024") };
        let sums = sums(&host).expect("sums");
        assert_eq!((sums.allocated_bytes, sums.peak_active_bytes), (1024, None));
    }

    #[test]
    fn absurd_sizes_do_not_overflow() {
        let mut host = host("segment_alloc 4096 1024\nalloc 4096 1024\nfree 4096 1024");
        for i in 0..host.events.len() {
            let event = host.events.get(i).expect("an event");
            host.events.set(i, trace::Event { size: u64::MAX, ..event });
        }
        host.segments[0].size = u64::MAX;
        let sums = sums(&host).expect("sums");
        assert_eq!((sums.peak_active_bytes, sums.peak_reserved_bytes), (Some(u64::MAX), Some(u64::MAX)));
    }
}
