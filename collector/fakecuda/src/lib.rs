//! A `libcuda.so.1` and `libnvidia-ml.so.1` for machines without a GPU: the driver functions that Vramscope calls, with
//! writable memory, a capacity, streams that can be held, and failures on demand.
//!
//! It models which calls fail and how, what counts against the capacity, the order of work on streams, the contents of
//! memory, and that addresses without memory cannot be accessed. It does not model kernels, several processes, or time.
//!
//! A test configures it with environment variables (`settings`) and controls it with the functions `fakecuda_*`
//! (`control`). Both libraries are this one file under two names, so they have the same devices. Under the
//! name `libcudart.so` it is the CUDA runtime too (`runtime`).
//!
//! [`machine::Machine`] is one type in three files (`machine`, `pools` and `streams`), which therefore import each other.
//! All other imports go one way: `api` and `control` → `machine` → `model` and `device` → `ranges` → `arena` and `system` → `code`.

// A C library consists of calls with pointers.
#![allow(unsafe_code)]
#![cfg(target_os = "linux")]

mod api;
mod arena;
mod code;
mod control;
mod device;
mod faults;
mod machine;
mod model;
mod pools;
mod ranges;
mod runtime;
mod settings;
mod streams;
mod system;
