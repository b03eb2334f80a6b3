//! The process's recording, if Vramscope's allocator is its source of events.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use recorder::cuda;
use recorder::{Capture, RecorderSink, Stacks};
use trace::Settings;
use trace::limits::RecorderLimits;

use crate::config::{Config, DeviceConfig};
use crate::job;

/// A recording that starts when CUDA is initialised, or no recording.
pub(super) struct AllocatorRecording {
    /// The configuration, until the recording starts.
    config: Mutex<Option<Config>>,
    stacks: OnceLock<Arc<Stacks>>,
}

impl AllocatorRecording {
    /// Prepares a recording as configured, or none.
    pub(super) fn new(config: Option<Config>) -> Self {
        Self { config: Mutex::new(config), stacks: OnceLock::new() }
    }

    /// Starts the recording. It must precede the first request, because a recording names its devices at its start.
    pub(super) fn start(&self, torch: &str, settings: &Settings, level: Capture) -> Result<(), String> {
        let config = self.config.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut config) = config else { return Ok(()) };
        let devices = cuda::Device::list().map_err(|error| error.to_string())?;
        let device = |device: cuda::DeviceInfo| DeviceConfig {
            number: device.ordinal.into(),
            name: device.name,
            capacity: device.total_memory,
        };
        config.devices = devices.into_iter().map(device).collect();
        config.torch = torch.to_owned();
        config.settings = settings.into();
        config.stacks = level.keeps_in_events();
        job::start(&config)?;
        let stacks = job::current().map(|job| job.shared_stacks());
        match stacks.is_some_and(|stacks| self.stacks.set(stacks).is_ok()) {
            true => Ok(()),
            false => Err("The recording must start before the first allocation.".to_owned()),
        }
    }

    /// Removes and returns a device's sink.
    pub(super) fn sink(&self, device: i64) -> Option<RecorderSink> {
        // If this recording has not started, the present one has another source.
        self.stacks.get()?;
        job::current()?.take_sink(device)
    }

    /// Returns the table that numbers stacks: the recording's, or a detached one.
    #[inline]
    pub(super) fn stacks(&self) -> &Stacks {
        self.stacks.get_or_init(|| Arc::new(Stacks::detached(RecorderLimits::default())))
    }
}
