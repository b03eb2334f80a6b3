//! Where the allocators' events are recorded to, if anywhere.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use shared::format::{Device, Header};
use shared::limits::RecorderLimits;
use vramscope::driver::cuda;
use vramscope::recorder::{Capture, DeviceSegments, Recorder, RecorderHandle, RecorderSink, RecorderStats, Stacks};

/// A recording to a file that begins with CUDA, or none.
pub(super) struct Recording {
    file: Option<PathBuf>,
    stacks: OnceLock<Arc<Stacks>>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    handle: Option<RecorderHandle>,
    sinks: Vec<(i64, RecorderSink)>,
}

impl Recording {
    /// A recording to this file, or none.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self { file, stacks: OnceLock::new(), open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins, before the first request: a recording names its devices at its start.
    pub(super) fn begin(&self, mut header: Header, level: Capture) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let devices = cuda::Device::list().map_err(|error| error.to_string())?;
        header.devices = devices
            .into_iter()
            .map(|device| Device { number: device.ordinal.into(), name: device.name, capacity: device.total_memory })
            .collect();
        let numbers: Vec<i64> = header.devices.iter().map(|device| device.number).collect();
        let (sinks, handle) =
            Recorder::new(header).capture(level).start_all(file).map_err(|error| error.to_string())?;
        if self.stacks.set(Arc::clone(handle.stacks())).is_err() {
            return Err("the recording can't begin any more: memory was allocated before".to_owned());
        }
        *self.open() = Open { handle: Some(handle), sinks: numbers.into_iter().zip(sinks).collect() };
        Ok(())
    }

    /// A device's part of it.
    pub(super) fn sink(&self, device: i64) -> Option<RecorderSink> {
        let sinks = &mut self.open().sinks;
        let at = sinks.iter().position(|(number, _)| *number == device)?;
        Some(sinks.swap_remove(at).1)
    }

    /// The numbers of stacks: the recording's, or some of its own.
    #[inline]
    pub(super) fn stacks(&self) -> &Stacks {
        self.stacks.get_or_init(|| Arc::new(Stacks::detached(RecorderLimits::default())))
    }

    /// Ends it.
    pub(super) fn end(&self, segments: Vec<DeviceSegments>) -> Option<RecorderStats> {
        let handle = std::mem::take(&mut *self.open()).handle?;
        Some(handle.finish(segments))
    }
}
