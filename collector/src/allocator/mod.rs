//! The caching allocator where several threads use it: locks around the pure one of [`shared::allocator`].
//!
//! One lock a device, held for one operation of the allocator and the driver's calls within it, and never while
//! anything is sent: the sink only puts events into a queue that is full or is not.

mod locked;
mod message;
mod release;
mod sink;
mod snapshot;

pub use locked::{Fault, LockedAllocator};
pub use message::{Refusal, out_of_memory};
pub use release::{Release, ReleaseError};
pub use sink::{EventSink, History};
pub use snapshot::{DeviceState, snapshot};
