//! What a growing session is to be once it has given up its oldest events: made beside it, a slice at a time, so that
//! letting them go is a matter of an instant.
//!
//! ```text
//! events ───────────────●───────────────────────► the session
//!                       cut ── slices ──► catches up ─► takes its place
//! ```

use super::Device;
use super::growing::Growing;
use super::live::EVENT_BYTES;
use crate::trace::{DeviceTrace, Events, Segment, Settings, Snapshot};

/// See the module.
#[derive(Debug)]
pub(super) struct Successor {
    /// The position of the session at which it begins.
    cut: u32,
    trace: DeviceTrace,
    device: Device,
    growing: Growing,
    /// States that were not what was held, of those known by now: how many it has taken in.
    corrected: usize,
}

impl Successor {
    /// Begins at a position of a device, with the state there.
    pub(super) fn begin(cut: u32, old: &Device, snapshot: &mut Snapshot) -> Self {
        let (mut device, mut growing) = Growing::begin(snapshot);
        let trace = DeviceTrace::default();
        let start = old.replay.segments_at(cut);
        growing.carry_on([(0, start)], &trace, &mut device, &mut snapshot.tags);
        Self { cut, trace, device, growing, corrected: 0 }
    }

    pub(super) fn cut(&self) -> u32 {
        self.cut
    }

    /// Other settings, from now on.
    pub(super) fn set(&mut self, settings: &Settings) {
        self.growing.set(settings);
    }

    /// Takes in events of device `index` that it does not have yet, so many at most.
    pub(super) fn carry_on(&mut self, slice: usize, index: usize, old: &Growing, snapshot: &mut Snapshot) {
        let Snapshot { devices, tags, .. } = snapshot;
        let Some(whole) = devices.get(index) else { return };
        let from = self.cut as usize + self.trace.events.len();
        whole.events.iter_from(from).take(slice).for_each(|event| self.trace.events.push(event));
        let to = self.cut.saturating_add(self.trace.events.len() as u32);
        let known = old.corrected.get(self.corrected..).unwrap_or(&[]);
        let later = known.iter().take_while(|(at, _)| *at <= to);
        self.corrected += later.clone().count();
        let cut = self.cut;
        let states = later.filter(|(at, _)| *at >= cut).map(|(at, segments)| (at - cut, segments.clone()));
        let states: Vec<(u32, Vec<Segment>)> = states.collect();
        self.growing.carry_on(states, &self.trace, &mut self.device, tags);
        self.growing.known.extend(tags, &self.trace, &self.device.replay);
    }

    /// What was made: the events of its trace, and all that is found of them.
    pub(super) fn take(self) -> (Events, Device, Growing) {
        (self.trace.events, self.device, self.growing)
    }

    /// Bytes of memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        let device = &self.device;
        self.trace.events.len() * EVENT_BYTES + device.replay.bytes() + device.usage.memory() + self.growing.bytes()
    }
}
