//! One snapshot of several devices' allocators.

use allocator::{DeviceAllocator, Driver, TraceEntry};
use trace::frames::Symbols;
use trace::units::Address;
use trace::{DeviceTrace, Event, Segment, Settings, Snapshot, Tag, Tags};

use super::sink::{EventSink, History};

/// One device's part of a snapshot, copied under its lock.
#[derive(Debug)]
pub struct DeviceState {
    device: i64,
    segments: Vec<Segment>,
    /// With times in microseconds since the epoch.
    entries: Vec<(TraceEntry, i64)>,
}

impl DeviceState {
    /// Copies the state and, as PyTorch does after copying the entries, records a snapshot event.
    pub fn capture<D: Driver>(device: i64, allocator: &mut DeviceAllocator<D, EventSink>) -> Self {
        let history = allocator.sink_mut().history.as_ref();
        let entries = history.map(|history| History::entries(history).copied().collect()).unwrap_or_default();
        Self { device, segments: allocator.snapshot(), entries }
    }
}

/// Builds a snapshot of several devices. `symbols` is the table that numbered their stacks.
pub fn snapshot(states: Vec<DeviceState>, mut symbols: Symbols, settings: Settings, tags_entries: bool) -> Snapshot {
    let mut tags = Tags::default();
    // As PyTorch writes a missing compile context.
    let compile_context = symbols.intern(b"N/A");
    let devices = states.into_iter().map(|DeviceState { device, segments, entries }| {
        let mut trace = DeviceTrace { device, segments, ..DeviceTrace::default() };
        for (entry, time_us) in entries {
            let pool = tags_entries.then_some(entry.pool);
            let tag = tags.intern(Tag { stream: entry.stream, pool, compile_context, ..Tag::default() });
            let (action, address) = (entry.action, Address(entry.address));
            trace.events.push(Event { action, address, size: entry.size, time_us, tag, stack: entry.stack });
        }
        trace
    });
    let devices = devices.collect();
    Snapshot { devices, symbols, tags, settings, ..Snapshot::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use allocator::sim::{Placement, SimDriver};
    use allocator::{AllocatorConfig, Request, TORCH_2_11};
    use trace::frames::StackId;

    use super::*;
    use crate::ManualClock;

    #[test]
    fn a_snapshot_has_segments_and_history() {
        let sink = EventSink { recorder: None, history: Some(History::new(10, true, Arc::new(ManualClock::new(9)))) };
        let driver = SimDriver::new(64 << 20, Placement::FirstFit);
        let mut allocator = DeviceAllocator::new(driver, sink, &TORCH_2_11, AllocatorConfig::default());
        allocator.malloc(Request { size: 1000, ..Request::default() }).unwrap();
        allocator.malloc(Request { size: 3 << 20, stack: StackId(0), ..Request::default() }).unwrap();
        let states = vec![DeviceState::capture(2, &mut allocator)];
        let snapshot = snapshot(states, Symbols::default(), Settings::default(), true);
        let device = &snapshot.devices[0];
        let names: Vec<&str> = device.events.iter().map(|event| event.action.name()).collect();
        assert_eq!(names, ["segment_alloc", "alloc", "segment_alloc", "alloc"]);
        assert_eq!((device.device, device.segments.len(), device.events.get(0).unwrap().time_us), (2, 2, 9));
        let again = DeviceState::capture(2, &mut allocator);
        assert_eq!(again.entries.last().unwrap().0.action.name(), "snapshot");
    }
}
