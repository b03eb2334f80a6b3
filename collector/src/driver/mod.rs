//! What a GPU says of its memory, from NVML and from CUDA.
//!
//! Imports go one way: `outside` → `nvml`.

pub mod nvml;
pub mod outside;
