//! Workloads: memory traces that the project makes itself.

pub mod caching_allocator;
pub mod sample;
pub mod snapshot_writer;
