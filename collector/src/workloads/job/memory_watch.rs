//! Says when much of a run's cached memory becomes unusable (`--warn-at`).

use crate::workloads::monitor::{Monitor, Warning};
use allocator::{DeviceAllocator, Driver, TraceSink};
use replay::FreeSums;

/// Looks at the allocator before each request.
pub struct MemoryWatch {
    monitor: Monitor,
    warn: Box<dyn FnMut(Warning<'_>)>,
}

impl MemoryWatch {
    /// Creates a watch of a device with so many bytes, which calls `warn` when the unusable share passes `threshold`.
    pub fn new(threshold: f64, capacity: u64, warn: Box<dyn FnMut(Warning<'_>)>) -> Self {
        Self { monitor: Monitor::new(threshold, capacity), warn }
    }

    /// Looks at an allocator.
    pub(super) fn look<D: Driver, S: TraceSink>(&mut self, allocator: &DeviceAllocator<D, S>) {
        let Some(times) = self.monitor.look(allocator.cached(), allocator.largest_servable()) else { return };
        let sums = FreeSums::of(&allocator.segments());
        let (is_expandable, conf) = (allocator.config().expandable_segments, &*allocator.config().conf);
        (self.warn)(Warning { sums, reserved: allocator.reserved(), times, is_expandable, conf });
    }
}
