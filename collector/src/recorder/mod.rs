//! From the allocator's entries to a file, without making an allocation wait.
//!
//! ```text
//! allocator, under its device's lock        a thread of the recorder
//! RecorderSink ──► bounded queue ─────────► chunks of columns ──► Output (a file, a server)
//! Stacks ────────► new names ─────────────►
//! RecorderHandle ► marks, the end ────────►
//! ```
//! A full queue, or an output without room, costs events, never time: they are counted by kind, and a gap stands in the
//! file where they were, with the sequence numbers that they would have had. The file is a [`shared::format`] recording at every moment.

mod capture;
mod clock;
mod handle;
mod lane;
mod output;
mod pen;
mod room;
mod sink;
mod stacks;
mod tee;
mod writer;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;
use std::time::Duration;

pub use capture::Capture;
pub use clock::{Clock, ManualClock, MonotonicClock};
pub use handle::{DeviceSegments, RecorderHandle, RecorderStats};
use lane::Lane;
pub use output::{FileOutput, Output};
use pen::Pen;
use room::Room;
use rtrb::RingBuffer;
use shared::format::{Header, Writer};
use shared::limits::RecorderLimits;
pub use sink::{RecorderSink, WhenFull};
pub use stacks::Stacks;
pub use tee::Tee;
use writer::{Source, Thread};

/// Why a recording can't begin.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The file can't be created or written.
    #[error("{path} can't be written: {source}. Name another file, or make room.")]
    Output {
        /// The file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// The writer's thread can't be started.
    #[error("The recorder's thread can't be started: {0}.")]
    Thread(io::Error),
    /// No device to record.
    #[error("Nothing to record: the header names no device.")]
    NoDevice,
}

/// A recording that is about to begin.
pub struct Recorder {
    header: Header,
    capture: Capture,
    when_full: WhenFull,
    clock: Arc<dyn Clock>,
    limits: RecorderLimits,
    start: Vec<DeviceSegments>,
}

impl Recorder {
    /// Records the devices that the header names; its clock and start time are filled in.
    pub fn new(header: Header) -> Self {
        Self {
            header,
            capture: Capture::default(),
            when_full: WhenFull::default(),
            clock: Arc::new(MonotonicClock::new()),
            limits: RecorderLimits::default(),
            start: Vec::new(),
        }
    }

    /// How much is recorded; [`Capture::All`] otherwise.
    #[must_use]
    pub fn capture(mut self, capture: Capture) -> Self {
        self.capture = capture;
        self
    }

    /// What happens when the queue is full; [`WhenFull::Count`] otherwise.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Where times come from; a [`MonotonicClock`] otherwise.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Other bounds than the default ones.
    #[must_use]
    pub fn limits(mut self, limits: RecorderLimits) -> Self {
        self.limits = limits;
        self
    }

    /// What is reserved when recording begins; nothing otherwise. Without stacks: none has a number yet.
    #[must_use]
    pub fn start_state(mut self, start: Vec<DeviceSegments>) -> Self {
        self.start = start;
        self
    }

    /// Begins a recording of one device to a file. The file is created, or emptied if there is one.
    pub fn start(self, path: &Path) -> Result<(RecorderSink, RecorderHandle), RecorderError> {
        let (sinks, handle) = self.start_all(path)?;
        Ok((sinks.into_iter().next().ok_or(RecorderError::NoDevice)?, handle))
    }

    /// Begins a recording to a file, with a sink for each device of the header, in its order.
    pub fn start_all(self, path: &Path) -> Result<(Vec<RecorderSink>, RecorderHandle), RecorderError> {
        let failed = |source| RecorderError::Output { path: path.display().to_string(), source };
        let output = FileOutput::create(path).map_err(failed)?;
        self.start_to(Box::new(output), &path.display().to_string())
    }

    /// Begins a recording to anything, which `path` names in errors.
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
        for device in &self.header.devices {
            let found = self.start.iter().find(|start| start.device == device.number);
            writer.segments(device.number, 0, found.map_or(&[], |found| &found.segments), &mut bytes);
        }
        // At once, so that a file that can't be written is known before anything relies on it.
        output.append(&bytes).map_err(|source| RecorderError::Output { path: path.to_owned(), source })?;
        self.spawn(writer, bytes.len() as u64, output)
    }

    fn spawn(
        self,
        writer: Writer,
        written: u64,
        output: Box<dyn Output>,
    ) -> Result<(Vec<RecorderSink>, RecorderHandle), RecorderError> {
        let Self { header, capture, when_full, clock, limits, .. } = self;
        let (stacks, names) = Stacks::new(limits);
        let (notes, noted) = mpsc::sync_channel(limits.queue_marks);
        let (end, ended) = mpsc::sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let (mut sinks, mut sources, mut lanes) = (Vec::new(), Vec::new(), Vec::new());
        for device in &header.devices {
            let (producer, consumer) = RingBuffer::new(limits.queue_events.max(16));
            let lane = Arc::new(Lane::default());
            let keeps_stacks = capture.keeps_in_events();
            sinks.push(RecorderSink::new(producer, Arc::clone(&clock), Arc::clone(&lane), when_full, keeps_stacks));
            sources.push(Source::new(device.number, consumer, Arc::clone(&lane)));
            lanes.push(lane);
        }
        let mut pen = Pen::new(writer, output, names);
        pen.stats.bytes = written;
        let thread = Thread {
            sources,
            notes: noted,
            stop: Arc::clone(&stop),
            clock: Arc::clone(&clock),
            interval: Duration::from_millis(limits.flush_millis),
            room: Room::new(when_full, Duration::from_millis(limits.room_millis)),
            pen,
        };
        let builder = std::thread::Builder::new().name("vramscope-recorder".to_owned());
        let thread = builder.spawn(move || thread.run(&ended)).map_err(RecorderError::Thread)?;
        for lane in &lanes {
            lane.set_writer(thread.thread().clone());
        }
        let handle = RecorderHandle {
            stacks: Arc::new(stacks),
            clock,
            notes,
            when_full,
            marks_lost: AtomicU64::new(0),
            samples_lost: AtomicU64::new(0),
            stop,
            end,
            thread: Some(thread),
            process: std::process::id(),
        };
        Ok((sinks, handle))
    }
}
