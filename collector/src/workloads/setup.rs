//! How a run is set up: the device's size, the allocator and the random seed.

use allocator::{AllocatorConfig, DeviceAllocator, Profile, TORCH_2_11};

use super::job::{Device, Job, RunControl};

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Bytes of a simulated device, or the bytes that may be used of a real one.
    pub capacity: u64,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The PyTorch release whose allocator is used.
    pub profile: &'static Profile,
    /// The allocator's settings.
    pub config: AllocatorConfig,
}

impl Default for Setup {
    fn default() -> Self {
        Self { capacity: 24 << 30, seed: 1, profile: &TORCH_2_11, config: AllocatorConfig::default() }
    }
}

impl Setup {
    /// Creates a job on a device.
    pub(super) fn job<D: Device>(&self, device: D, control: RunControl) -> Job<D> {
        let total = device.total_memory();
        let make = |log| {
            let mut allocator = DeviceAllocator::new(device, log, self.profile, self.config.clone());
            if self.capacity < total {
                let share = self.capacity as f64 / total.max(1) as f64;
                // Cannot fail: the share lies between 0 and 1.
                let _ = allocator.set_memory_fraction(share);
            }
            allocator
        };
        Job::new(make, self.seed, control)
    }
}
