//! One device of a running job: adds what was recorded of it, and trims it when there are too many events.

use super::device::Device;
use super::session::{Notes, Session};
use format::recording::{DeviceUpdate, findings};
use replay::index::{Index, IndexInput, KnownState, TrimmedCopy};
use replay::{Replayed, rewind_state};
use trace::{Annotation, DeviceTrace, Loss, Segment, Settings, Snapshot, Stage, Tags};

/// The removal of events from the front of a device's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// The device, by its index in the summary.
    pub device: usize,
    /// The number of removed events.
    pub events: u32,
    /// Microseconds from the trace's former beginning to its new one.
    pub span_us: i64,
}

/// How many events all devices have together, and how many they may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    pub(super) events: usize,
    pub(super) limit: usize,
    pub(super) devices: usize,
}

impl Capacity {
    /// Returns the position at which a device with so many events is cut, so that half of the limit is kept once it is
    /// reached. Devices with few events, together at most half of the limit, keep theirs.
    fn cut(self, events: usize) -> Option<u32> {
        let half = self.limit.div_ceil(2) as u64;
        let cut = events as u64 * half / (self.events.min(self.limit) as u64).max(1);
        let cut = cut.min(events.saturating_sub(1) as u64);
        let is_few = events <= self.limit / (2 * self.devices).max(1);
        u32::try_from(cut).ok().filter(|_| !is_few)
    }
}

/// The part of a device that only a running job has.
#[derive(Debug, Default)]
pub(super) struct LiveDevice {
    /// Whether events were trimmed, so that the trace's start is not that of the recording.
    is_trimmed: bool,
    /// The number of places where events are missing.
    places: usize,
    /// The position of the newest gap, if no state was recorded since.
    gap: Option<u32>,
    /// Whether the state after the last event is a recorded one.
    is_settled: bool,
    /// The copy that replaces the device when there are too many events.
    copy: Option<Box<TrimmedCopy<Device>>>,
}

impl LiveDevice {
    /// Adds what was recorded since the last time.
    pub(super) fn extend(
        &mut self,
        batch: DeviceUpdate,
        trace: &mut DeviceTrace,
        device: &mut Device,
        tags: &mut Tags,
        settings: &Settings,
    ) {
        let from = trace.events.len() as u32;
        self.places += batch.loss_positions.len();
        batch.events.iter().for_each(|event| trace.events.push(event));
        trace.annotations.extend(batch.annotations);
        trace.samples.extend(batch.samples);
        trace.outside.extend(batch.outside);
        for loss in batch.losses {
            add_loss(&mut trace.losses, Loss { position: loss.position.saturating_add(from), ..loss });
        }
        let has_resumed = self.is_settled && !batch.events.is_empty();
        let mut states = if has_resumed { self.restart(device) } else { Vec::new() };
        let mut gaps = batch.loss_positions.iter().map(|position| position.saturating_add(from));
        let mut seen = 0;
        for moment in batch.moments {
            let position = moment.position.saturating_add(from);
            self.gap = gaps.by_ref().take(moment.losses_before.saturating_sub(seen)).last().or(self.gap);
            seen = moment.losses_before;
            if let Some(gap) = self.gap.take().filter(|gap| *gap < position) {
                let segments = rewind_state(trace, tags, settings, gap..position, moment.segments.clone());
                // If the events behind the gap were replayed from the state before it, the results can't be corrected.
                if device.replay.positions() > gap {
                    states = self.restart(device);
                    states.retain(|state| state.position == 0 || state.position < gap);
                }
                states.push(KnownState { position: gap, segments });
            }
            states.push(KnownState { position, segments: moment.segments });
        }
        self.gap = gaps.next_back().or(self.gap);
        device.extend(IndexInput { trace, tags, settings, states });
    }

    /// Ends the trace. A state that was recorded after the last event and after a gap has no event with which it could
    /// take effect: it becomes the state after the last event.
    pub(super) fn end(&mut self, trace: &DeviceTrace, device: &mut Device, tags: &mut Tags, settings: &Settings) {
        let end = trace.events.len() as u32;
        if end == 0 || trace.losses.last().is_none_or(|loss| loss.position != end) {
            return;
        }
        let Some(segments) = device.replay.take_pending_state() else { return };
        let states = self.restart(device);
        device.replay.extend(IndexInput { trace, tags: &mut *tags, settings, states });
        self.is_settled = device.replay.end_with(segments, trace, tags);
        device.indexes.extend(Replayed { trace, tags, replay: &device.replay });
    }

    /// Clears what was built. Returns the states from which it can be built again.
    fn restart(&mut self, device: &mut Device) -> Vec<KnownState> {
        let mut states = vec![KnownState { position: 0, segments: device.replay.segments_at(0) }];
        states.extend_from_slice(device.replay.corrections());
        *device = Device::default();
        (self.copy, self.is_settled) = (None, false);
        states
    }

    /// Prepares the copy to keep when there are too many events, by at most `count` events. A device with few events
    /// needs none.
    pub(super) fn prepare(&mut self, index: usize, capacity: Capacity, session: &mut Session, count: usize) {
        let Session { snapshot: Snapshot { devices: traces, tags, settings, .. }, devices, .. } = session;
        let (Some(trace), Some(device)) = (traces.get(index), devices.get(index)) else { return };
        if self.copy.is_none()
            && let Some(cut) = capacity.cut(trace.events.len())
        {
            self.copy = Some(Box::new(TrimmedCopy::begin(cut, device.replay.segments_at(cut), tags, settings)));
        }
        if let Some(copy) = &mut self.copy {
            copy.extend(count, trace, device.replay.corrections(), tags, settings);
        }
    }

    /// Drops what was prepared, when no more events can come.
    pub(super) fn settle(&mut self) {
        self.copy = None;
    }

    /// Trims roughly the older half of a device's events, unless it has few. The state at the cut becomes the start.
    pub(super) fn trim(&mut self, index: usize, capacity: Capacity, session: &mut Session) -> Option<Trim> {
        self.prepare(index, capacity, session, usize::MAX);
        let copy = self.copy.take()?;
        let Session { snapshot: Snapshot { devices: traces, tags, settings, .. }, devices, .. } = session;
        let (trace, device) = (traces.get_mut(index)?, devices.get_mut(index)?);
        let position = copy.cut();
        let first_us = trace.events.time_us.get(position as usize).unwrap_or_default();
        let span_us = first_us.saturating_sub(trace.start_us());
        trace.losses.retain(|loss| loss.position > position);
        trace.losses.iter_mut().for_each(|loss| loss.position -= position);
        trim_marks(&mut trace.annotations, first_us);
        trace.samples.retain(|sample| sample.time_us >= first_us);
        trace.outside.retain(|sample| sample.time_us >= first_us);

        let pending: Option<Vec<Segment>> = device.replay.take_pending_state();
        let gap = self.gap.map(|gap| gap.saturating_sub(position));
        (trace.events, *device) = copy.finish();
        // A pending state takes effect with the next event.
        let end = trace.events.len() as u32;
        let states = pending.map(|segments| KnownState { position: end, segments });
        device.extend(IndexInput { trace, tags, settings, states: states.into_iter().collect() });
        *self = Self { is_trimmed: true, places: trace.losses.len(), gap, ..Self::default() };
        Some(Trim { device: index, events: position, span_us })
    }

    /// Returns what the recording says about this device.
    pub(super) fn notes(&self, trace: &DeviceTrace, is_late: bool, has_ended: bool) -> Notes {
        let losses = findings::of_losses(trace.device, &trace.losses, self.places, has_ended);
        Notes { losses, has_start: !self.is_trimmed && !is_late }
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.copy.as_ref().map_or(0, |copy| copy.bytes())
    }
}

/// Adds a loss; losses at one position become one.
fn add_loss(losses: &mut Vec<Loss>, loss: Loss) {
    match losses.last_mut().filter(|last| last.position == loss.position) {
        Some(last) => {
            last.events = last.events.saturating_add(loss.events);
            for (sum, count) in last.by_action.iter_mut().zip(loss.by_action) {
                *sum = sum.saturating_add(count);
            }
        }
        None => losses.push(loss),
    }
}

/// Removes the marks before a time, except the starts of spans that were still open then.
fn trim_marks(marks: &mut Vec<Annotation>, first_us: i64) {
    let mut open: Vec<Annotation> = Vec::new();
    for mark in marks.iter().filter(|mark| mark.time_us < first_us) {
        match mark.stage {
            Stage::Start => open.push(*mark),
            Stage::End => {
                if let Some(i) = open.iter().rposition(|other| other.name == mark.name) {
                    open.remove(i);
                }
            }
            Stage::Instant => {}
        }
    }
    marks.retain(|mark| mark.time_us >= first_us);
    marks.splice(0..0, open);
}
