//! The native side of Vramscope: the recorder in a training job, the server, the command line, and the workloads.
//!
//! What is absent: no format, no replay and no analysis lives here. All of that is in `shared`, where the page runs
//! the same code; this crate reads files, opens sockets and prints.

pub mod allocator;
#[cfg(feature = "program")]
pub mod bus;
#[cfg(feature = "program")]
pub mod cli;
pub mod driver;
#[cfg(feature = "program")]
pub mod ingest;
pub mod publish;
pub mod recorder;
#[cfg(feature = "program")]
pub mod script;
#[cfg(feature = "program")]
pub mod server;
#[cfg(feature = "program")]
pub mod store;
#[cfg(feature = "program")]
pub mod workloads;
