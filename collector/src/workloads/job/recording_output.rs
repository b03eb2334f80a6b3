//! Records a run while it happens, to a file or a server. If the run is killed, the recording ends there.

use allocator::{AllocatorConfig, Profile, TraceEntry};
use format::export;
use format::{Device as RecordedDevice, Header};
use trace::frames::{FrameId, StackId, Symbols};
use trace::limits::RecorderLimits;
use trace::{OutsideSample, Segment, Stage};

use super::clock::JobClock;
use recorder::{DeviceSegments, Output, Recorder, RecorderError};
use recorder::{RecorderHandle, RecorderSink, RecorderStats, WhenFull};

/// The number of the only device.
const DEVICE: i64 = 0;

/// A recorder that follows a job.
pub struct RecordingOutput {
    sink: RecorderSink,
    handle: RecorderHandle,
    /// The recorder's number of each of the job's stacks.
    stacks: Vec<StackId>,
}

/// The header of a recording.
pub struct Heading<'a> {
    /// The name of the recording.
    pub name: &'a str,
    /// The job that it belongs to; empty if it is no part of one.
    pub job: String,
    /// The name of the machine; empty if it is not published.
    pub host: String,
    /// The model and the bytes of the device.
    pub device: (String, u64),
    /// The allocator's settings and release.
    pub allocator: (&'a AllocatorConfig, &'a Profile),
}

impl RecordingOutput {
    /// Starts recording to `output`, with the times of `clock`. Errors name the output as `path`.
    pub fn start(
        output: Box<dyn Output>,
        path: &str,
        heading: Heading<'_>,
        clock: &JobClock,
    ) -> Result<Self, RecorderError> {
        let Heading { name, job, host, device: (model, capacity), allocator: (config, profile) } = heading;
        let header = Header {
            program: concat!("vramscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            name: name.to_owned(),
            job,
            // As with the host, the file of a run that is not watched is the same for every process.
            pid: (!host.is_empty()).then(std::process::id),
            host,
            torch: profile.torch.to_owned(),
            devices: vec![RecordedDevice { number: DEVICE, name: model, capacity }],
            settings: export::settings(config, profile),
            ..Header::default()
        };
        let limits = if clock.is_machine() { RecorderLimits::live() } else { RecorderLimits::default() };
        let recorder = Recorder::new(header).clock(clock.event_clock()).limits(limits).when_full(WhenFull::Wait);
        let (sinks, handle) = recorder.start_to(output, path)?;
        let sink = sinks.into_iter().next().ok_or(RecorderError::NoDevice)?;
        // The empty stack has number 0 in the job and in the recorder.
        Ok(Self { sink, handle, stacks: vec![StackId(0)] })
    }

    /// Passes on the stacks that are new since the last call. A stack has to come before the events that refer to it.
    pub(super) fn add_stacks(&mut self, symbols: &Symbols) {
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

    /// Records an event.
    pub(super) fn record(&mut self, mut entry: TraceEntry, time_us: i64) {
        entry.stack = self.stack(entry.stack);
        self.sink.record_at(entry, time_us);
    }

    /// Records the start or end of a span.
    pub(super) fn mark(&self, name: &str, stage: Stage) {
        self.handle.mark(DEVICE, name, stage);
    }

    /// Records a sample of the memory beside the allocator.
    pub(super) fn outside(&self, sample: OutsideSample) {
        self.handle.outside(DEVICE, sample);
    }

    /// Ends the recording with the segments at the end.
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
