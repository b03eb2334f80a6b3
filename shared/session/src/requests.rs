//! What a device's program requested of the allocator, to be answered again under other settings.

use serde::{Deserialize, Serialize};

use super::session::Session;
use format::Header;
use query::Packed;
use trace::{Marks, Settings, Snapshot};
use whatif::{Requests, RunTrace};

/// A device's requests, with what was recorded about them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedRequests {
    /// The requests.
    pub requests: Requests,
    /// The allocator's settings, as the trace has them.
    pub settings: Settings,
    /// What the file shows of the release that wrote it.
    pub marks: Marks,
    /// The release of PyTorch; empty if the trace doesn't have it.
    pub torch: String,
    /// Bytes of the device, if the recording tells.
    pub device_bytes: Option<u64>,
    /// The number of events.
    pub events: u32,
    /// The microseconds from each position to the next; empty without times.
    pub steps_us: Packed<u32>,
}

impl Session {
    /// Calls `write` with a run of a device's requests as a recording. Returns `None` if there is no such device.
    pub fn record_run<T>(
        &mut self,
        name: &str,
        device: usize,
        run: &RunTrace,
        write: impl FnOnce(&Header, &Snapshot) -> T,
    ) -> Option<T> {
        run.record(name, (&mut self.snapshot, self.header.as_ref(), device), write)
    }

    /// Returns the requests of a device, given by its index in the summary; `None` if there is no such device.
    pub fn requests(&self, device: usize) -> Option<RecordedRequests> {
        let Self { snapshot, header, summary, .. } = self;
        let (trace, of_device) = (snapshot.devices.get(device)?, summary.devices.get(device)?);
        let replay = &self.devices.get(device)?.replay;
        let requests = Requests::of(trace, (&snapshot.symbols, &snapshot.tags), replay, &snapshot.settings);
        let mut before = 0;
        let steps = (1..=replay.positions()).map(|position| {
            let time = replay.time_at(trace, position).max(before);
            let step = time - std::mem::replace(&mut before, time);
            u32::try_from(step).unwrap_or(u32::MAX)
        });
        let steps_us = if of_device.has_times { Packed(steps.collect()) } else { Packed::default() };
        let known = header.iter().flat_map(|header| &header.devices).find(|known| known.number == trace.device);
        Some(RecordedRequests {
            device_bytes: known.map(|known| known.capacity).filter(|bytes| *bytes > 0),
            requests,
            settings: snapshot.settings.clone(),
            marks: snapshot.marks,
            torch: header.as_ref().map(|header| header.torch.clone()).unwrap_or_default(),
            events: of_device.events,
            steps_us,
        })
    }
}
