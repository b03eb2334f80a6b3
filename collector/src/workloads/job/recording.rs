//! A recording of a run, written or sent while it runs: of one that is killed halfway, the first half is there.

use std::sync::Arc;

use shared::allocator::{AllocatorConfig, Profile, TraceEntry};
use shared::export;
use shared::format::{Device as Recorded, Header};
use shared::frames::{FrameId, StackId, Symbols};
use shared::limits::RecorderLimits;
use shared::trace::{Segment, Stage};

use super::BEGINNING_US;
use super::pace::Pace;
use crate::recorder::{Clock, DeviceSegments, ManualClock, MonotonicClock, Output, Recorder, RecorderError};
use crate::recorder::{RecorderHandle, RecorderSink, RecorderStats, WhenFull};

/// The number that the only device has.
const DEVICE: i64 = 0;

/// A recorder beside a job, with the job's stacks.
pub struct Recording {
    sink: RecorderSink,
    handle: RecorderHandle,
    /// Where times come from.
    clock: Arc<dyn Clock>,
    /// The same, where that is the job's.
    own: Option<Arc<ManualClock>>,
    /// When it began, in microseconds since the epoch.
    began_us: i64,
    /// How fast events come, where somebody watches.
    pace: Option<Pace>,
    /// The recorder's number of each of the job's stacks.
    stacks: Vec<StackId>,
}

/// What is said of a recording at its beginning.
pub struct Heading<'a> {
    /// What it is called.
    pub name: &'a str,
    /// The machine, where that matters.
    pub host: String,
    /// The device's model and its bytes.
    pub device: (String, u64),
    /// The allocator's settings.
    pub allocator: (&'a AllocatorConfig, &'a Profile),
}

impl Recording {
    /// Begins to record to `output`, which `path` names in errors. With a pace it is for somebody who watches: its times
    /// are those of the machine's clock. Without one they are the job's own, the same each time.
    pub fn start(
        output: Box<dyn Output>,
        path: &str,
        heading: Heading<'_>,
        pace: Option<Pace>,
    ) -> Result<Self, RecorderError> {
        let Heading { name, host, device: (model, capacity), allocator: (config, profile) } = heading;
        let header = Header {
            program: concat!("vramscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            name: name.to_owned(),
            host,
            torch: profile.torch.to_owned(),
            devices: vec![Recorded { number: DEVICE, name: model, capacity }],
            settings: export::settings(config, profile),
            ..Header::default()
        };
        let (clock, own, limits) = match pace {
            Some(_) => (Arc::new(MonotonicClock::new()) as Arc<dyn Clock>, None, RecorderLimits::live()),
            None => {
                let own = Arc::new(ManualClock::new(BEGINNING_US));
                (Arc::clone(&own) as _, Some(own), RecorderLimits::default())
            }
        };
        let recorder = Recorder::new(header).clock(Arc::clone(&clock)).limits(limits).when_full(WhenFull::Wait);
        let (sinks, handle) = recorder.start_to(output, path)?;
        let sink = sinks.into_iter().next().ok_or(RecorderError::NoDevice)?;
        // The empty stack has the same number everywhere.
        let began_us = clock.now_us();
        Ok(Self { sink, handle, clock, own, began_us, pace, stacks: vec![StackId(0)] })
    }

    pub(super) fn set_now(&self, now_us: i64) {
        if let Some(clock) = &self.own {
            clock.set(now_us);
        }
    }

    /// Now, by the recording's clock, in microseconds since the epoch.
    pub(super) fn now_us(&self) -> i64 {
        self.clock.now_us()
    }

    /// Microseconds since it began.
    pub(super) fn elapsed_us(&self) -> i64 {
        self.now_us().saturating_sub(self.began_us)
    }

    /// Whether somebody watches, for as long as it takes.
    pub(super) fn is_live(&self) -> bool {
        self.pace.is_some()
    }

    /// Waits until the next events are due. False when there are to be none any more.
    pub(super) fn wait(&mut self) -> bool {
        self.pace.as_mut().is_none_or(Pace::wait)
    }

    /// Learns the stacks that are new since it was asked last. They come before the events that have them.
    pub(super) fn learn(&mut self, symbols: &Symbols) {
        for number in self.stacks.len()..symbols.stack_count() {
            let frames: Vec<FrameId> =
                symbols.stack(StackId(number as u32)).iter().filter_map(|frame| self.frame(symbols, *frame)).collect();
            self.stacks.push(self.handle.stacks().stack(&frames));
        }
    }

    fn frame(&self, symbols: &Symbols, frame: FrameId) -> Option<FrameId> {
        let frame = symbols.frame(frame);
        self.handle.stacks().frame(&symbols.text(frame.name), &symbols.text(frame.filename), frame.line)
    }

    fn stack(&self, stack: StackId) -> StackId {
        self.stacks.get(stack.0 as usize).copied().unwrap_or_default()
    }

    /// Records an entry as of now; gives that time.
    pub(super) fn record(&mut self, mut entry: TraceEntry) -> i64 {
        entry.stack = self.stack(entry.stack);
        let now_us = self.now_us();
        self.sink.record_at(entry, now_us);
        if let Some(pace) = &mut self.pace {
            pace.count();
        }
        now_us
    }

    pub(super) fn mark(&self, name: &str, stage: Stage) {
        self.handle.mark(DEVICE, name, stage);
    }

    /// Ends the file, with what is held now.
    pub(super) fn finish(self, segments: &[Segment]) -> RecorderStats {
        let mut segments = segments.to_vec();
        for segment in &mut segments {
            segment.stack = self.stack(segment.stack);
            for block in &mut segment.blocks {
                block.stack = self.stack(block.stack);
            }
        }
        self.handle.finish(vec![DeviceSegments { device: DEVICE, segments }])
    }
}
