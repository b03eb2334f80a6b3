//! A recording of a run, written while it runs: of one that is killed halfway, the first half is there.

use std::path::Path;
use std::sync::Arc;

use shared::allocator::{AllocatorConfig, Profile, TraceEntry, TraceSink};
use shared::export;
use shared::format::{Device as Recorded, Header};
use shared::frames::{FrameId, StackId, Symbols};
use shared::trace::{Segment, Stage};

use super::BEGINNING_US;
use crate::recorder::{DeviceSegments, ManualClock, Recorder, RecorderError, RecorderHandle, RecorderSink};
use crate::recorder::{RecorderStats, WhenFull};

/// The number that the only device has.
const DEVICE: i64 = 0;

/// A recorder beside a job, on the job's clock and with the job's stacks.
pub struct Recording {
    sink: RecorderSink,
    handle: RecorderHandle,
    clock: Arc<ManualClock>,
    /// The recorder's number of each of the job's stacks.
    stacks: Vec<StackId>,
}

impl Recording {
    /// Begins to write a file: the run called `name`, on a device of this model and size.
    pub fn start(
        path: &Path,
        name: &str,
        (model, capacity): (String, u64),
        (config, profile): (&AllocatorConfig, &Profile),
    ) -> Result<Self, RecorderError> {
        let header = Header {
            program: concat!("vramscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            name: name.to_owned(),
            torch: profile.torch.to_owned(),
            devices: vec![Recorded { number: DEVICE, name: model, capacity }],
            settings: export::settings(config, profile),
            ..Header::default()
        };
        let clock = Arc::new(ManualClock::new(BEGINNING_US));
        let recorder = Recorder::new(header).clock(Arc::clone(&clock) as _).when_full(WhenFull::Wait);
        let (sink, handle) = recorder.start(path)?;
        // The empty stack has the same number everywhere.
        Ok(Self { sink, handle, clock, stacks: vec![StackId(0)] })
    }

    pub(super) fn set_now(&self, now_us: i64) {
        self.clock.set(now_us);
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

    pub(super) fn record(&mut self, mut entry: TraceEntry) {
        entry.stack = self.stack(entry.stack);
        self.sink.record(entry);
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
