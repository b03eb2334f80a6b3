//! The conditions that a run is repeated under.

use allocator::{AllocatorConfig, Profile};

/// Bytes of a device on which nothing is short: more than any device has.
pub const AMPLE: u64 = 1 << 40;

/// The conditions that a run is repeated under.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The release whose decisions are made.
    pub profile: &'static Profile,
    /// The allocator's settings.
    pub config: AllocatorConfig,
    /// The bytes of the device.
    pub capacity: u64,
    /// The bytes of the device that other processes hold, and the CUDA contexts.
    pub held_by_others: u64,
    /// The share of the device's bytes that this process may take (`set_per_process_memory_fraction`), if it is limited.
    pub fraction: Option<f64>,
}

impl Terms {
    /// Returns terms on a device where nothing is short.
    pub fn ample(profile: &'static Profile, config: AllocatorConfig) -> Self {
        Self { profile, config, capacity: AMPLE, held_by_others: 0, fraction: None }
    }

    /// Returns the bytes that the process can have: what others leave of the device, or less if a fraction limits it.
    pub fn room(&self) -> u64 {
        let left = self.capacity.saturating_sub(self.held_by_others);
        self.fraction.map_or(left, |share| left.min((self.capacity as f64 * share) as u64))
    }

    /// Returns the same terms on a device of another size.
    pub fn on(&self, capacity: u64) -> Self {
        Self { capacity, ..self.clone() }
    }
}
