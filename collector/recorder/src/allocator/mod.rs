//! The caching allocator for several threads: locks around the pure one of [`allocator`].
//!
//! Each device has one lock, held for one operation of the allocator with its calls of the driver. It is never held
//! while something is sent: the sink only puts events into a queue and does not wait for room.
//!
//! Imports go one way: `locked` → `message` and `sink`, `snapshot` → `sink`. `release` imports no sibling.

mod locked;
mod message;
mod release;
mod sink;
mod snapshot;

pub use locked::{AllocatorFault, LockedAllocator};
pub use message::{Refusal, out_of_memory};
pub use release::{Release, ReleaseError};
pub use sink::{EventSink, History};
pub use snapshot::{DeviceState, snapshot};
