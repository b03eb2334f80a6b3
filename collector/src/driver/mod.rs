//! Real devices: the caching allocator's `Driver` trait over CUDA, and memory usage from NVML.
//!
//! Imports go one way: `outside` → `cuda` and `nvml`.

pub mod cuda;
#[cfg(feature = "program")]
pub mod nvml;
#[cfg(feature = "program")]
pub mod outside;
