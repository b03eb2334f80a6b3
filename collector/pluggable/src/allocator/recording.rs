//! The process's recording, as far as the allocator is its source.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use shared::limits::RecorderLimits;
use shared::trace::Settings;
use vramscope::driver::cuda;
use vramscope::recorder::{Capture, RecorderSink, Stacks};

use crate::config::{Config, DeviceConfig};
use crate::job;

/// A recording that begins with CUDA, or none.
pub(super) struct Recording {
    /// Until it begins.
    config: Mutex<Option<Config>>,
    stacks: OnceLock<Arc<Stacks>>,
}

impl Recording {
    /// A recording to where this says, or none.
    pub(super) fn new(config: Option<Config>) -> Self {
        Self { config: Mutex::new(config), stacks: OnceLock::new() }
    }

    /// Begins, before the first request: a recording names its devices at its start.
    pub(super) fn begin(&self, torch: &str, settings: &Settings, level: Capture) -> Result<(), String> {
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
            false => Err("the recording can't begin any more: memory was allocated before".to_owned()),
        }
    }

    /// A device's part of it.
    pub(super) fn sink(&self, device: i64) -> Option<RecorderSink> {
        // Without one of its own, a recording that is there is another's.
        self.stacks.get()?;
        job::current()?.take_sink(device)
    }

    /// The numbers of stacks: the recording's, or some of its own.
    #[inline]
    pub(super) fn stacks(&self) -> &Stacks {
        self.stacks.get_or_init(|| Arc::new(Stacks::detached(RecorderLimits::default())))
    }
}
