//! CUDA devices over NVIDIA's driver library, which is looked for when a device is opened and not before.
//!
//! This is the one folder with `unsafe`. What keeps its public functions safe: a [`Device`] knows every byte that was
//! handed out through it and every stream that belongs to it, and refuses all other addresses and handles before the
//! driver sees them.
//!
//! cudarc finds the library and describes its structures. Its functions are not used: they panic where a driver is
//! too old to have one, and an error code that is newer than the bindings would be no value of their enumeration.
//! [`symbols`] looks every function up once and takes codes as numbers.

// Calls into a C library; each has a note.
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
pub use managed::{Advice, ManagedStatistics, Place, Source};
pub use pool::{PoolError, PoolSettings, PoolStatistics, StreamOrderedPool, Watermark};
