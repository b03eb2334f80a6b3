//! What a device's trace holds, said once when its file has been read.

use crate::analysis::usage::Usage;
use crate::analysis::{actions, oom};
use crate::lod;
use crate::query::{Axis, DeviceSummary};
use crate::replay::Replay;
use crate::trace::{DeviceTrace, Snapshot, TagId, Tags};
use crate::units::{PoolId, Stream};

/// Sums up one device.
pub(super) fn of_device(snapshot: &Snapshot, trace: &DeviceTrace, replay: &Replay, usage: &Usage) -> DeviceSummary {
    let events = replay.positions();
    let times = &trace.events.time_us;
    DeviceSummary {
        device: trace.device,
        model: String::new(),
        capacity: 0,
        events,
        actions: actions::count(trace, snapshot),
        allocations: replay.allocations.len() as u32,
        has_times: times.iter().any(|time| time != 0),
        start_us: times.get(0).unwrap_or(0),
        span_us: replay.time_at(trace, events),
        time: lod::extent(trace, replay, Axis::Time),
        event: lod::extent(trace, replay, Axis::Event),
        start: replay.state_at(0).totals,
        end: replay.state_at(events).totals,
        peak_position: usage.peak_position,
        peak: replay.state_at(usage.peak_position).totals,
        peak_reserved: usage.peak_reserved,
        ooms: oom::positions(trace),
        annotations: trace.annotations.len() as u32,
        losses: trace.losses.len() as u32,
        lost: trace.losses.iter().fold(0, |sum, loss| sum.saturating_add(loss.events)),
        streams: streams(&snapshot.tags, replay),
        pools: replay.pools.iter().copied().filter(|pool: &PoolId| pool.is_private()).collect(),
        stacks: usage.iter().filter(|(stack, _)| stack.0 != 0).count() as u32,
    }
}

/// The streams of all allocations, in order of first use.
fn streams(tags: &Tags, replay: &Replay) -> Vec<Stream> {
    let mut seen = vec![false; tags.iter().count()];
    let mut streams = Vec::new();
    for tag in replay.allocations.tag.iter() {
        let Some(mark) = seen.get_mut(tag as usize).filter(|mark| !**mark) else { continue };
        *mark = true;
        let stream = tags.get(TagId(tag)).stream;
        if !streams.contains(&stream) {
            streams.push(stream);
        }
    }
    streams
}
