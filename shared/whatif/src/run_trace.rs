//! The allocator's events in a run, so that a run can be viewed like a recording.

use serde::{Deserialize, Serialize};

use super::requests::{Act, RequestStep, Requests};
use super::runner::Runner;
use super::{Outcome, Terms};
use allocator::{DriverError, TraceEntry};
use format::export;
use format::{Device, Header};
use query::encoding::{decode, encode};
use trace::event::Action;
use trace::frames::StackId;
use trace::units::Address;
use trace::{DeviceTrace, Event, Events, Segment, Settings, Snapshot, Tag, Tags};

/// Where the stack of an entry is found in the recording, as a [`StackId`] of the run. 0 is no stack, and numbers below this
/// one are those of events, plus one. The rest are stacks of memory that was there at the start.
const START: u32 = 1 << 31;

/// Returns the stack of what happens at a step.
pub(super) fn stack_of(step: &RequestStep) -> StackId {
    let after = match step.act {
        // The releases have the stack of the call, and its step comes after them.
        Act::EmptyCache | Act::EndPool(_) => Some(step.event),
        _ => step.event.checked_add(1),
    };
    StackId(after.filter(|after| *after < START).unwrap_or_default())
}

/// Returns the stack of memory that was there at the start.
pub(super) fn stack_at_start(stack: StackId) -> StackId {
    StackId(stack.0.checked_add(START).filter(|code| *code > START).unwrap_or_default())
}

/// The events of a run. Its call sites, times and annotations are those of the recording, which [`Self::record`] adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunTrace {
    torch: String,
    settings: Settings,
    /// Bytes of the device; 0 if nothing limits it.
    capacity: u64,
    entries: Vec<TraceEntry>,
    /// For each entry, the event of the recording at which it happened.
    events: Vec<u32>,
    /// The segments at the end.
    segments: Vec<Segment>,
}

impl Requests {
    /// Runs the requests under some terms, and returns also every event of the run.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_trace(&self, terms: &Terms) -> Result<(Outcome, RunTrace), DriverError> {
        let mut runner: Runner<'_, Vec<TraceEntry>> = self.runner(terms, Vec::new())?;
        let mut events = Vec::new();
        let outcome = runner.run(|allocator, event| events.resize(allocator.sink().len(), event));
        let capacity = if terms.capacity < super::AMPLE { terms.capacity } else { 0 };
        let run = RunTrace {
            torch: terms.profile.torch.to_owned(),
            settings: export::settings(&terms.config, terms.profile),
            capacity,
            segments: runner.allocator.segments(),
            entries: std::mem::take(runner.allocator.sink_mut()),
            events,
        };
        Ok((outcome, run))
    }
}

impl RunTrace {
    /// Returns the run as bytes, for another worker.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Returns the run that [`Self::to_bytes`] wrote; `None` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        decode(bytes)
    }

    /// Calls `write` with the run as a recording: with the call sites, times and annotations of the device with this index in
    /// the recording that the requests were read from. Returns `None` if there is no such device.
    ///
    /// The tables of `of` are lent to the recording meanwhile.
    pub fn record<T>(
        &self,
        name: &str,
        (of, header, device): (&mut Snapshot, Option<&Header>, usize),
        write: impl FnOnce(&Header, &Snapshot) -> T,
    ) -> Option<T> {
        let recorded = of.devices.get(device)?;
        let trace = self.trace(recorded, &mut of.tags);
        let known = header.and_then(|header| header.devices.iter().find(|known| known.number == trace.device));
        let device = Device { number: trace.device, capacity: self.capacity, ..known.cloned().unwrap_or_default() };
        let header = Header {
            program: concat!("vramscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            name: name.to_owned(),
            torch: self.torch.clone(),
            allocator: String::new(),
            clock: header.map_or("system", |header| &header.clock).to_owned(),
            started_us: recorded.start_us(),
            devices: vec![device],
            settings: self.settings.clone(),
            faults: Vec::new(),
            ..header.cloned().unwrap_or_default()
        };
        let run = Snapshot {
            devices: vec![trace],
            symbols: std::mem::take(&mut of.symbols),
            tags: std::mem::take(&mut of.tags),
            settings: self.settings.clone(),
            ..Snapshot::default()
        };
        let written = write(&header, &run);
        (of.symbols, of.tags) = (run.symbols, run.tags);
        Some(written)
    }

    /// Returns the trace of the run.
    fn trace(&self, recorded: &DeviceTrace, tags: &mut Tags) -> DeviceTrace {
        let stack = |code: StackId| match code.0 {
            0 => StackId::default(),
            event @ 1..START => StackId(recorded.events.stack.get(event as usize - 1).unwrap_or_default()),
            code => StackId(code - START),
        };
        // Notes that the program wrote are kept where they were, as far as the run has events.
        let notes = recorded.events.action.iter().enumerate().filter(|(_, code)| is_note(*code));
        let mut notes = notes.filter_map(|(at, _)| Some((at, recorded.events.get(at)?))).peekable();
        let last = recorded.events.len().saturating_sub(1);
        let mut events = Events::default();
        for (entry, &at) in self.entries.iter().zip(&self.events) {
            while let Some((_, note)) = notes.next_if(|(place, _)| *place < at as usize) {
                events.push(note);
            }
            let TraceEntry { action, address, size, stream, pool, stack: code } = *entry;
            events.push(Event {
                action,
                address: Address(address),
                size,
                time_us: recorded.events.time_us.get((at as usize).min(last)).unwrap_or_default(),
                tag: tags.intern(Tag { stream, pool: Some(pool), ..Tag::default() }),
                stack: stack(code),
            });
        }
        let mut segments = self.segments.clone();
        for segment in &mut segments {
            segment.stack = stack(segment.stack);
            for block in &mut segment.blocks {
                block.stack = stack(block.stack);
            }
        }
        DeviceTrace {
            device: recorded.device,
            events,
            segments,
            annotations: recorded.annotations.clone(),
            ..DeviceTrace::default()
        }
    }
}

/// Whether an action is a note of the program.
fn is_note(code: u8) -> bool {
    code == Action::UserDefined as u8 || code == Action::Annotate as u8
}
