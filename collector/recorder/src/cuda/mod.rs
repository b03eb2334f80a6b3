//! CUDA devices over NVIDIA's driver library, which is loaded when a device is opened.
//!
//! This is the only folder of this crate with `unsafe`. Its public functions are safe because a [`Device`] knows every
//! byte that was allocated through it and every stream that belongs to it, and refuses all other addresses and handles
//! before the driver sees them.
//!
//! cudarc finds the library and declares its structures. Its functions are not used: they panic if a driver is too old
//! to have one, and an error code that is newer than the bindings would not be a value of their enumeration. [`symbols`]
//! looks up every function once and treats codes as numbers.
//!
//! Imports go one way: `driver`, `pool` → `copy`, `streams` → `device` → `spans`, `symbols` → `error`. [`CudaDriver`] is
//! one type in two files, `driver` and `managed`.

// Calls into a C library. Each unsafe block has a SAFETY comment.
#![allow(unsafe_code)]

mod copy;
mod device;
mod driver;
mod error;
mod managed;
mod pool;
mod spans;
mod streams;
mod symbols;

pub use device::{Device, DeviceInfo};
pub use driver::{CudaDriver, CudaEvent};
pub use error::CudaError;
pub use managed::{Advice, ManagedStatistics, PageLocation, Source};
pub use pool::{PoolError, PoolSettings, PoolStatistics, StreamOrderedPool, Watermark};
