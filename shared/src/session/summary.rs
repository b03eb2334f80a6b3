//! What a device's trace holds, said once when its file has been read.

use crate::analysis::actions::Counts;
use crate::analysis::oom;
use crate::analysis::usage::Usage;
use crate::lod::{self, sampled};
use crate::query::{Axis, DeviceSummary};
use crate::replay::Replay;
use crate::totals::Totals;
use crate::trace::{DeviceTrace, Sample, Snapshot, TagId, Tags};
use crate::units::{PoolId, Stream};

/// What a summary is made of, found as a trace grows.
#[derive(Debug, Default)]
pub(super) struct Known {
    counts: Counts,
    /// See [`oom::positions`].
    pub(super) ooms: Vec<(u32, u64)>,
    has_times: bool,
    /// Entries and allocations that were looked at.
    entries: usize,
    allocations: usize,
    /// By tag, whether its stream is known.
    tags: Vec<bool>,
    streams: Vec<Stream>,
    start: Option<Totals>,
    /// The sums at the peak, with its position.
    peak: Option<(u32, Totals)>,
}

impl Known {
    /// Takes in what came since.
    pub(super) fn extend(&mut self, tags: &Tags, trace: &DeviceTrace, replay: &Replay) {
        self.counts.extend(trace, tags);
        let mut times = trace.events.time_us.range(self.entries..trace.events.len());
        self.has_times = self.has_times || times.any(|time| time != 0);
        self.ooms.extend(oom::positions_from(trace, self.entries));
        self.entries = trace.events.len();
        // The streams of all allocations, in order of first use.
        self.tags.resize(tags.len(), false);
        for tag in replay.allocations.tag.range(self.allocations..replay.allocations.len()) {
            let Some(mark) = self.tags.get_mut(tag as usize).filter(|mark| !**mark) else { continue };
            *mark = true;
            let stream = tags.get(TagId(tag)).stream;
            if !self.streams.contains(&stream) {
                self.streams.push(stream);
            }
        }
        self.allocations = replay.allocations.len();
    }

    /// Sums up the device.
    pub(super) fn tell(
        &mut self,
        snapshot: &Snapshot,
        trace: &DeviceTrace,
        replay: &Replay,
        usage: &Usage,
    ) -> DeviceSummary {
        let events = replay.positions();
        let at = usage.peak_position;
        if self.peak.is_none_or(|(position, _)| position != at) {
            self.peak = Some((at, replay.state_at(at).totals));
        }
        let peak = self.peak.map(|(_, totals)| totals).unwrap_or_default();
        let sampled = sampled::newest(trace, replay);
        let end = replay.state_at(events).totals;
        let most = Sample::largest(&trace.samples).map_or(0, |sample| sample.reserved);
        DeviceSummary {
            device: trace.device,
            model: String::new(),
            capacity: 0,
            events,
            actions: self.counts.named(&snapshot.tags, &snapshot.symbols),
            allocations: replay.allocations.len() as u32,
            has_times: self.has_times || sampled.is_some(),
            start_us: trace.start_us(),
            span_us: sampled::span_us(trace, replay),
            time: lod::extent(trace, replay, Axis::Time),
            event: lod::extent(trace, replay, Axis::Event),
            start: *self.start.get_or_insert_with(|| replay.state_at(0).totals),
            end: sampled.map_or(end, |sample| sampled::totals(sample, end)),
            peak_position: at,
            peak,
            peak_reserved: most.max(usage.peak_reserved),
            ooms: self.ooms.clone(),
            annotations: trace.annotations.len() as u32,
            losses: trace.losses.len() as u32,
            lost: trace.losses.iter().fold(0, |sum, loss| sum.saturating_add(loss.events)),
            streams: self.streams.clone(),
            pools: replay.pools.iter().copied().filter(|pool: &PoolId| pool.is_private()).collect(),
            stacks: usage.iter().filter(|(stack, _)| stack.0 != 0).count() as u32,
        }
    }
}

/// Sums up one device.
pub(super) fn of_device(snapshot: &Snapshot, trace: &DeviceTrace, replay: &Replay, usage: &Usage) -> DeviceSummary {
    let mut known = Known::default();
    known.extend(&snapshot.tags, trace, replay);
    known.tell(snapshot, trace, replay, usage)
}
