//! A `libcuda.so.1` and `libnvidia-ml.so.1` for machines without a GPU: the driver functions that Vramscope calls, with
//! memory that can really be written, a capacity, streams that can be held, and failures on demand.
//!
//! What it is true to: which calls fail and how, what is charged against the capacity, the order of work on streams,
//! contents, and that addresses without memory can't be touched. What it leaves out: kernels, several processes, the
//! time that anything takes.
//!
//! A test tells it what to be by environment variables (`settings`) and steers it by the functions `fakecuda_*`
//! (`control`). Both libraries are this one file under two names, so that they speak of the same devices. Under the name
//! `libcudart.so` it is the CUDA runtime too (`runtime`).

// A C library is made of calls with pointers.
#![allow(unsafe_code)]
#![cfg(target_os = "linux")]

mod api;
mod arena;
mod code;
mod control;
mod device;
mod faults;
mod machine;
mod pools;
mod ranges;
mod runtime;
mod settings;
mod streams;
mod system;
