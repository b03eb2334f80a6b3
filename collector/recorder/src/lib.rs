//! The parts that run inside a training job: the allocator with its locks over CUDA, the recorder that writes its
//! events without making an allocation wait, and the publisher that sends them to a server.
//!
//! ```text
//! allocator, under its device's lock        a thread of the recorder
//! RecorderSink ──► bounded queue ─────────► chunks of columns ──► Output (a file, a server)
//! Stacks ────────► new names ─────────────►
//! RecorderHandle ► marks, the end ────────►
//! ```
//! A full queue, or an output without room, loses events, but never takes time. Lost events are counted by action, and
//! the recording says where they are missing and which sequence numbers they would have had. The file is a valid
//! [`format`] recording at every moment.
//!
//! Imports go one way: [`Recorder`] → `writer` → `chunk_writer` → `handle` → `stacks`; `chunk_writer` →
//! `backpressure` → `sink` → `side_channel`, `sink` → `event_clock` → `clock`, and `handle` → `sink`. `dual_output` →
//! `file_output` → `output`. `output`, `clock` and `capture` import no sibling.

pub mod allocator;
mod backpressure;
mod capture;
mod chunk_writer;
mod clock;
pub mod cuda;
pub mod disk;
mod dual_output;
mod event_clock;
mod file_output;
mod handle;
mod output;
pub mod publish;
mod side_channel;
mod sink;
mod stacks;
mod writer;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;
use std::time::Duration;

use backpressure::Backpressure;
pub use capture::Capture;
use chunk_writer::ChunkWriter;
pub use clock::{Clock, ManualClock, MonotonicClock};
pub use dual_output::DualOutput;
pub use file_output::{FileCondition, FileOutput};
use format::{Header, Writer};
pub use handle::{DeviceSegments, RecorderHandle, RecorderStats};
pub use output::{Output, Unwritten};
use rtrb::RingBuffer;
use side_channel::SideChannel;
pub use sink::{RecorderSink, WhenFull};
pub use stacks::Stacks;
use trace::limits::RecorderLimits;
use writer::{DeviceQueue, RecorderThread};

/// Why a recording cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The file cannot be created or written.
    #[error("Cannot write {path}: {}. Choose another file, or free some disk space.", crate::disk::why(source))]
    Output {
        /// The file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The writer's thread cannot be started.
    #[error("Cannot start the recorder's thread: {0}.")]
    Thread(io::Error),
    /// The header names no device.
    #[error("Nothing to record: the header names no device.")]
    NoDevice,
}

/// Configures and starts a recording.
pub struct Recorder {
    header: Header,
    capture: Capture,
    when_full: WhenFull,
    clock: Arc<dyn Clock>,
    limits: RecorderLimits,
    start: Vec<DeviceSegments>,
    leaves_unused_out: bool,
}

impl Recorder {
    /// Configures a recording of the devices that the header names. The header's clock and start time are filled in.
    pub fn new(header: Header) -> Self {
        Self {
            header,
            capture: Capture::default(),
            when_full: WhenFull::default(),
            clock: Arc::new(MonotonicClock::new()),
            limits: RecorderLimits::default(),
            start: Vec::new(),
            leaves_unused_out: false,
        }
    }

    /// Sets how much is recorded. The default is [`Capture::All`].
    #[must_use]
    pub fn capture(mut self, capture: Capture) -> Self {
        self.capture = capture;
        self
    }

    /// Sets what happens when the queue is full. The default is [`WhenFull::Count`].
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Sets the clock. The default is a [`MonotonicClock`].
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets bounds other than the default ones.
    #[must_use]
    pub fn limits(mut self, limits: RecorderLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the segments that exist when the recording starts. The default is none. They must not have stacks, because no
    /// stack is numbered yet.
    #[must_use]
    pub fn start_state(mut self, start: Vec<DeviceSegments>) -> Self {
        self.start = start;
        self
    }

    /// Leaves devices out of the recording until they are used: a device that has no segments at the start is added with
    /// its first event or its first sample of more than 0 bytes, together with the marks made before. If none is ever used, the recording has the first one.
    #[must_use]
    pub fn leave_unused_out(mut self) -> Self {
        self.leaves_unused_out = true;
        self
    }

    fn is_open_at_start(&self, device: i64) -> bool {
        let is_used = |start: &DeviceSegments| start.device == device && !start.segments.is_empty();
        !self.leaves_unused_out || self.start.iter().any(is_used)
    }

    /// Starts a recording of one device to a file. The file is created, or emptied if it exists.
    pub fn start(self, path: &Path) -> Result<(RecorderSink, RecorderHandle), RecorderError> {
        let (sinks, handle) = self.start_all(path)?;
        Ok((sinks.into_iter().next().ok_or(RecorderError::NoDevice)?, handle))
    }

    /// Starts a recording to a file. Returns a sink for each device of the header, in the header's order.
    pub fn start_all(self, path: &Path) -> Result<(Vec<RecorderSink>, RecorderHandle), RecorderError> {
        let failed = |source| RecorderError::Output { path: path.display().to_string(), source };
        let output = FileOutput::create(path).map_err(failed)?;
        self.start_to(Box::new(output), &path.display().to_string())
    }

    /// Starts a recording to any output, which errors call `path`.
    pub fn start_to(
        mut self,
        mut output: Box<dyn Output>,
        path: &str,
    ) -> Result<(Vec<RecorderSink>, RecorderHandle), RecorderError> {
        if self.header.devices.is_empty() {
            return Err(RecorderError::NoDevice);
        }
        self.header.clock = self.clock.name().to_owned();
        self.header.started_us = self.clock.now_us();
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&self.header, &mut bytes);
        for device in self.header.devices.iter().filter(|device| self.is_open_at_start(device.number)) {
            let found = self.start.iter().find(|start| start.device == device.number);
            writer.segments(device.number, 0, found.map_or(&[], |found| &found.segments), &mut bytes);
        }
        // Written at once, so that the caller learns of a file that cannot be written.
        output.append(&bytes).map_err(|source| RecorderError::Output { path: path.to_owned(), source })?;
        self.spawn(writer, bytes.len() as u64, output)
    }

    fn spawn(
        self,
        writer: Writer,
        written: u64,
        output: Box<dyn Output>,
    ) -> Result<(Vec<RecorderSink>, RecorderHandle), RecorderError> {
        let open: Vec<bool> = self.header.devices.iter().map(|device| self.is_open_at_start(device.number)).collect();
        let Self { header, capture, when_full, clock, limits, .. } = self;
        let (stacks, names) = Stacks::new(limits);
        let (notes, note_receiver) = mpsc::sync_channel(limits.queue_marks);
        let (end, end_receiver) = mpsc::sync_channel(1);
        // A fifth flush at the same time fails.
        let (flushes, flush_receiver) = mpsc::sync_channel(4);
        let stop = Arc::new(AtomicBool::new(false));
        let (mut sinks, mut devices, mut sides) = (Vec::new(), Vec::new(), Vec::new());
        for (device, is_open) in header.devices.iter().zip(open) {
            let (producer, consumer) = RingBuffer::new(limits.queue_events.max(16));
            let side = Arc::new(SideChannel::default());
            let keeps_stacks = capture.keeps_in_events();
            sinks.push(RecorderSink::new(producer, Arc::clone(&clock), Arc::clone(&side), when_full, keeps_stacks));
            devices.push(DeviceQueue::new(device.number, consumer, Arc::clone(&side), is_open));
            sides.push(side);
        }
        let mut writer = ChunkWriter::new(writer, output, names);
        writer.stats.bytes = written;
        let thread = RecorderThread {
            devices,
            notes: note_receiver,
            flushes: flush_receiver,
            stop: Arc::clone(&stop),
            clock: Arc::clone(&clock),
            interval: Duration::from_millis(limits.flush_millis),
            backpressure: Backpressure::new(when_full, Duration::from_millis(limits.room_millis)),
            writer,
        };
        let builder = std::thread::Builder::new().name("vramscope-recorder".to_owned());
        let thread = builder.spawn(move || thread.run(&end_receiver)).map_err(RecorderError::Thread)?;
        for side in &sides {
            side.set_writer(thread.thread().clone());
        }
        let handle = RecorderHandle {
            stacks: Arc::new(stacks),
            clock,
            notes,
            when_full,
            marks_lost: AtomicU64::new(0),
            samples_lost: AtomicU64::new(0),
            flushes,
            stop,
            end,
            thread: Some(thread),
            process: std::process::id(),
        };
        Ok((sinks, handle))
    }
}
