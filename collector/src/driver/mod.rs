//! Where memory comes from: the `Driver` trait of the caching allocator over real devices, and what NVML says of them.

pub mod cuda;
#[cfg(feature = "program")]
pub mod nvml;
#[cfg(feature = "program")]
pub mod outside;
