//! The caching allocator as a state machine: PyTorch's decisions, without a device, a clock or a lock.
//!
//! The same code serves a GPU in a training job and simulates one. It does what `c10/cuda/CUDACachingAllocator.cpp`
//! does and uses that file's terms where it has them; a [`Profile`] holds the differences between releases.
//!
//! One [`DeviceAllocator`] serves one device through a [`Driver`] and reports each event to a [`TraceSink`].
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod adopt;
mod block;
mod check;
mod config;
mod device;
mod driver;
mod entry;
mod error;
mod events;
mod expandable;
mod free;
mod free_memory;
mod free_set;
mod malloc;
mod parse;
mod pool;
mod profile;
mod release;
pub mod rounding;
mod routes;
mod settings;
pub mod sim;
mod slab;
mod slot_table;
mod state;
mod stats;

pub use config::{AllocatorConfig, Reserve};
pub use device::{DeviceAllocator, Request};
pub use driver::{Driver, DriverError, MemoryInfo};
pub use entry::{TraceEntry, TraceSink};
pub use error::{AllocError, MisuseError, OutOfMemory};
pub use free::FreeError;
pub use parse::{ConfigError, ErrorKind, parse};
pub use pool::PoolOptions;
pub use profile::{
    CaptureGuard, Lending, Profile, RandomState, Separators, SourceLines, TORCH_2_4, TORCH_2_5, TORCH_2_6, TORCH_2_7,
    TORCH_2_8, TORCH_2_9, TORCH_2_10, TORCH_2_11, TORCH_2_12, TORCH_2_13, TORCH_2_14, TORCH_2_15, TieBreak,
};
pub use routes::Filter;
pub use settings::{DivisionTable, SettingValue};
pub use stats::{Stat, StatArray, Stats};
