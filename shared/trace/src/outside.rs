//! Memory outside the allocator: the job's process on the host, and other users of the device.

/// Memory outside a device's allocator at one moment, in bytes. `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutsideSample {
    /// The time in microseconds since the epoch.
    pub time_us: i64,
    /// The resident set of the job's process.
    pub resident: Option<u64>,
    /// Pinned host memory that PyTorch holds for the process, cached memory included.
    pub pinned: Option<u64>,
    /// Memory of the device that is neither free nor the allocator's: other processes, and the contexts and libraries of
    /// this one.
    pub outside: Option<u64>,
    /// Memory of the device that other processes use.
    pub others: Option<u64>,
}

impl OutsideSample {
    /// The names of the quantities, in the order of [`Self::values`].
    pub const NAMES: [&'static str; 4] = ["resident", "pinned", "outside", "others"];

    /// Returns all quantities.
    pub const fn values(&self) -> [Option<u64>; 4] {
        [self.resident, self.pinned, self.outside, self.others]
    }

    /// Creates a sample of these quantities.
    pub const fn new(time_us: i64, [resident, pinned, outside, others]: [Option<u64>; 4]) -> Self {
        Self { time_us, resident, pinned, outside, others }
    }

    /// Merges samples: the time of the first one, and the largest known value of each quantity. `None` for no samples.
    pub fn largest(some: &[Self]) -> Option<Self> {
        some.iter().copied().reduce(|a, b| {
            let mut values = a.values();
            for (most, value) in values.iter_mut().zip(b.values()) {
                *most = value.max(*most);
            }
            Self::new(a.time_us, values)
        })
    }
}
