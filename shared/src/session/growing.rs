//! One device of a session that grows: what it is carried on from.

use super::live::Trimmed;
use super::successor::Successor;
use super::summary::Known;
use super::{Caches, Device, Session};
use crate::analysis::usage::Usage;
use crate::recording::DeviceUpdate;
use crate::replay::{Growth, rewound};
use crate::trace::{Annotation, DeviceTrace, Loss, Segment, Settings, Snapshot, Stage, Tags};

/// How many events all devices have, and how many they may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    pub(super) all: usize,
    pub(super) limit: usize,
    pub(super) devices: usize,
}

impl Fill {
    /// Where a device with so many events is cut, so that half of what may be held is kept once the bound is reached.
    /// Devices that have few events, together half of what is allowed at most, keep theirs.
    fn cut(self, events: usize) -> Option<u32> {
        let half = self.limit.div_ceil(2) as u64;
        let cut = events as u64 * half / (self.all.min(self.limit) as u64).max(1);
        let cut = cut.min(events.saturating_sub(1) as u64);
        let is_few = events <= self.limit / (2 * self.devices).max(1);
        u32::try_from(cut).ok().filter(|_| !is_few)
    }
}

/// What one device is carried on from.
#[derive(Debug)]
pub(super) struct Growing {
    growth: Growth,
    pub(super) known: Known,
    /// States that were not what was held, each with the position after which it counts.
    pub(super) corrected: Vec<(u32, Vec<Segment>)>,
    /// Whether events were given up, so that the start is none.
    pub(super) is_trimmed: bool,
    /// Places where events are missing.
    pub(super) places: usize,
    /// The position of the newest gap, where no state was written since.
    gap: Option<u32>,
    /// Whether the state after the last event is one that was written.
    is_settled: bool,
    /// What takes its place when there are too many events.
    successor: Option<Box<Successor>>,
}

impl Growing {
    /// A device of which nothing is known.
    pub(super) fn begin(snapshot: &Snapshot) -> (Device, Self) {
        let (growth, replay) = Growth::begin(&snapshot.settings);
        let device = Device { replay, usage: Usage::default(), caches: Caches::default() };
        let (known, corrected) = (Known::default(), Vec::new());
        (
            device,
            Self {
                growth,
                known,
                corrected,
                is_trimmed: false,
                places: 0,
                gap: None,
                is_settled: false,
                successor: None,
            },
        )
    }

    /// Takes in what came of the device.
    pub(super) fn take(
        &mut self,
        batch: DeviceUpdate,
        trace: &mut DeviceTrace,
        device: &mut Device,
        tags: &mut Tags,
        settings: &Settings,
    ) {
        let from = trace.events.len() as u32;
        batch.events.iter().for_each(|event| trace.events.push(event));
        trace.annotations.extend(batch.annotations);
        trace.samples.extend(batch.samples);
        for loss in batch.losses {
            add_loss(&mut trace.losses, Loss { position: loss.position.saturating_add(from), ..loss });
        }
        let is_over = self.is_settled && !batch.events.is_empty();
        let mut states = if is_over { self.begin_anew(device, settings) } else { Vec::new() };
        let mut gaps = batch.loss_positions.iter().map(|position| position.saturating_add(from));
        let mut seen = 0;
        for moment in batch.moments {
            let position = moment.position.saturating_add(from);
            self.gap = gaps.by_ref().take(moment.losses_before.saturating_sub(seen)).last().or(self.gap);
            seen = moment.losses_before;
            if let Some(gap) = self.gap.take().filter(|gap| *gap < position) {
                let known = rewound(trace, tags, settings, gap..position, moment.segments.clone());
                self.anchor(gap, known, &mut states, device, settings);
            }
            states.push((position, moment.segments));
        }
        self.gap = gaps.next_back().or(self.gap);
        self.carry_on(states, trace, device, tags);
    }

    /// The recording has ended. A state that was written after the last event, and after a gap, has no event from which it
    /// counts: it becomes the state after the last event that is there.
    pub(super) fn end(&mut self, trace: &DeviceTrace, device: &mut Device, tags: &mut Tags, settings: &Settings) {
        let end = trace.events.len() as u32;
        if end == 0 || trace.losses.last().is_none_or(|loss| loss.position != end) {
            return;
        }
        let Some(segments) = self.growth.take_written() else { return };
        let states = self.begin_anew(device, settings);
        self.replay(states, trace, device, tags);
        self.is_settled = self.growth.settle(&segments, &mut device.replay, tags);
        self.corrected.push((end, segments));
        device.usage.extend(trace, &device.replay);
    }

    /// Adds to `states` the one that follows for the position of a gap from one that was written behind it. Where what is
    /// behind the gap was carried forward from before it, everything is begun anew: what was found can't be changed.
    fn anchor(
        &mut self,
        gap: u32,
        known: Vec<Segment>,
        states: &mut Vec<(u32, Vec<Segment>)>,
        device: &mut Device,
        settings: &Settings,
    ) {
        if device.replay.positions() > gap {
            self.corrected.retain(|(at, _)| *at < gap);
            *states = self.begin_anew(device, settings);
        }
        states.push((gap, known));
    }

    /// Forgets what was found. Gives the states from which it can be found again: the start, and what was corrected.
    fn begin_anew(&mut self, device: &mut Device, settings: &Settings) -> Vec<(u32, Vec<Segment>)> {
        let mut states = vec![(0, device.replay.segments_at(0))];
        states.append(&mut self.corrected);
        let (growth, replay) = Growth::begin(settings);
        (self.growth, self.known, self.successor, self.is_settled) = (growth, Known::default(), None, false);
        *device = Device { replay, usage: Usage::default(), caches: Caches::default() };
        states
    }

    /// Takes in the events that the replay does not know yet; `states` say what was held at some positions on the way.
    pub(super) fn carry_on(
        &mut self,
        states: impl IntoIterator<Item = (u32, Vec<Segment>)>,
        trace: &DeviceTrace,
        device: &mut Device,
        tags: &mut Tags,
    ) {
        self.replay(states, trace, device, tags);
        device.usage.extend(trace, &device.replay);
    }

    fn replay(
        &mut self,
        states: impl IntoIterator<Item = (u32, Vec<Segment>)>,
        trace: &DeviceTrace,
        device: &mut Device,
        tags: &mut Tags,
    ) {
        let end = trace.events.len() as u32;
        for (position, segments) in states {
            self.corrected.extend(self.growth.extend(&mut device.replay, trace, tags, position.min(end)));
            if device.replay.positions() == 0 {
                // The start is another than was thought.
                (device.usage, device.caches) = (Usage::default(), Caches::default());
                self.known = Known::default();
            }
            self.growth.believe(segments, &mut device.replay, tags);
        }
        self.corrected.extend(self.growth.extend(&mut device.replay, trace, tags, end));
    }

    /// Other settings, from now on.
    pub(super) fn set(&mut self, settings: &Settings) {
        self.growth.set(settings);
        if let Some(successor) = &mut self.successor {
            successor.set(settings);
        }
    }

    /// Makes what is to be kept when there are too many events, `slice` of them at a time. Of a device that has few all will
    /// be kept.
    pub(super) fn prepare(&mut self, index: usize, fill: Fill, session: &mut Session, slice: usize) {
        self.begin_successor(index, fill, session);
        if let Some(mut successor) = self.successor.take() {
            successor.carry_on(slice, index, self, &mut session.snapshot);
            self.successor = Some(successor);
        }
    }

    /// Gives up what was prepared: nothing more comes.
    pub(super) fn settle(&mut self) {
        self.successor = None;
    }

    fn begin_successor(&mut self, index: usize, fill: Fill, session: &mut Session) {
        let Session { snapshot, devices, .. } = session;
        let cut = snapshot.devices.get(index).and_then(|trace| fill.cut(trace.events.len()));
        if let (None, Some(cut), Some(device)) = (&self.successor, cut, devices.get(index)) {
            self.successor = Some(Box::new(Successor::begin(cut, device, snapshot)));
        }
    }

    /// Gives up the older half, about, of a device's events where it has more than few; the state at the cut becomes the
    /// start.
    pub(super) fn trim(&mut self, index: usize, fill: Fill, session: &mut Session) -> Option<Trimmed> {
        self.begin_successor(index, fill, session);
        let mut successor = self.successor.take()?;
        successor.carry_on(usize::MAX, index, self, &mut session.snapshot);
        let Session { snapshot, devices, .. } = session;
        let (trace, device) = (snapshot.devices.get_mut(index)?, devices.get_mut(index)?);
        let position = successor.cut();
        let first_us = trace.events.time_us.get(position as usize).unwrap_or_default();
        let span_us = first_us.saturating_sub(trace.start_us());
        trace.losses.retain(|loss| loss.position > position);
        trace.losses.iter_mut().for_each(|loss| loss.position -= position);
        trim_marks(&mut trace.annotations, first_us);
        trace.samples.retain(|sample| sample.time_us >= first_us);

        let written = self.growth.take_written();
        let gap = self.gap.map(|gap| gap.saturating_sub(position));
        (trace.events, *device, *self) = successor.take();
        // It counts from the next event on.
        let at = trace.events.len() as u32;
        self.carry_on(written.map(|segments| (at, segments)), trace, device, &mut snapshot.tags);
        (self.is_trimmed, self.places, self.gap) = (true, trace.losses.len(), gap);
        Some(Trimmed { device: index, events: position, span_us })
    }

    /// Bytes of memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.growth.forward().bytes() + self.successor.as_ref().map_or(0, |successor| successor.bytes())
    }
}

/// Adds what is missing; gaps at one place are one.
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

/// Gives up the marks before a time, but the starts of spans that were still open then.
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
