#![doc = include_str!("../README.md")]

#[cfg(feature = "program")]
pub mod access;
pub mod allocator;
#[cfg(feature = "program")]
pub mod announcement;
#[cfg(feature = "program")]
mod brief_lock;
#[cfg(feature = "program")]
pub mod bus;
#[cfg(feature = "program")]
pub mod cli;
#[cfg(feature = "program")]
pub mod clock;
pub mod disk;
pub mod driver;
#[cfg(feature = "program")]
mod file_name;
#[cfg(feature = "program")]
pub mod ingest;
#[cfg(feature = "program")]
mod offline;
#[cfg(feature = "program")]
pub mod picture;
pub mod publish;
pub mod recorder;
#[cfg(feature = "program")]
pub mod remote;
#[cfg(feature = "program")]
pub mod script;
#[cfg(feature = "program")]
pub mod server;
#[cfg(feature = "program")]
pub mod shares;
#[cfg(feature = "program")]
mod size;
#[cfg(feature = "program")]
pub mod store;
#[cfg(feature = "program")]
pub mod workloads;
