//! The caching allocator as a state machine: PyTorch's decisions, without a device, a clock or a lock.

mod driver;
mod entry;

pub use driver::{Driver, DriverError, MemoryInfo};
pub use entry::{TraceEntry, TraceSink};
