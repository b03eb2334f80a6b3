//! The facts of a device that its summary states.

use analysis::actions::Counts;
use analysis::lod::{self, sampled};
use analysis::oom;
use analysis::usage::Usage;
use query::{Axis, DeviceSummary};
use replay::index::Index;
use replay::{Replay, Replayed};
use trace::totals::Totals;
use trace::units::{PoolId, Stream};
use trace::{DeviceTrace, Sample, Snapshot, TagId};

/// What a summary is made of.
#[derive(Debug, Default)]
pub(super) struct Facts {
    counts: Counts,
    /// The failed requests: see [`oom::positions`].
    pub(super) ooms: Vec<(u32, u64)>,
    has_times: bool,
    /// How many events were counted.
    events: usize,
    /// How many allocations were searched for streams.
    allocations: usize,
    /// Whether the stream of each tag is in `streams`.
    tags: Vec<bool>,
    /// The streams of allocations, in order of first use.
    streams: Vec<Stream>,
    start: Option<Totals>,
    /// The position of the peak, and the sums there.
    peak: Option<(u32, Totals)>,
}

impl Index<Replayed<'_>> for Facts {
    fn extend(&mut self, Replayed { trace, tags, replay }: Replayed<'_>) {
        self.counts.extend((trace, tags));
        let mut times = trace.events.time_us.range(self.events..trace.events.len());
        self.has_times = self.has_times || times.any(|time| time != 0);
        self.ooms.extend(oom::positions_from(trace, self.events));
        self.events = trace.events.len();
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

    fn bytes(&self) -> usize {
        self.counts.bytes() + self.ooms.capacity() * size_of::<(u32, u64)>() + self.tags.capacity()
    }
}

impl Facts {
    /// Returns the device's summary.
    pub(super) fn summary(
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
            decisive_oom: oom::decisive(trace, &self.ooms),
            annotations: trace.annotations.len() as u32,
            losses: trace.losses.len() as u32,
            lost: trace.losses.iter().fold(0, |sum, loss| sum.saturating_add(loss.events)),
            streams: self.streams.clone(),
            pools: replay.pools.iter().copied().filter(|pool: &PoolId| pool.is_private()).collect(),
            stacks: usage.iter().filter(|(stack, _)| stack.0 != 0).count() as u32,
            outside: trace.outside.len() as u32,
        }
    }
}
