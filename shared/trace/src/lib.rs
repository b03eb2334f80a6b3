//! The events of an allocator as columns, with what everything else shares: units, names, totals, limits and errors.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod column;
pub mod decimal;
pub mod error;
pub mod event;
pub mod few_map;
pub mod frames;
mod host;
pub mod limits;
mod marks;
pub mod narrow;
pub mod numbered;
pub mod order;
mod outside;
mod packed;
mod plain_column;
mod snapshot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod totals;
pub mod units;

pub use column::{Column, ColumnReader};
pub use host::HostMemory;
pub use marks::Marks;
pub use outside::OutsideSample;
pub use packed::Value;
pub use plain_column::{CHUNK, PlainColumn};
pub use snapshot::*;
