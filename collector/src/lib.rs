#![doc = include_str!("../README.md")]

pub mod access;
pub mod announcement;
pub mod assets;
mod baseline;
mod brief_lock;
pub mod bus;
pub mod cli;
pub mod clock;
pub mod driver;
mod file_name;
mod host_name;
pub mod ingest;
mod offline;
pub mod picture;
pub mod remote;
pub mod script;
pub mod server;
pub mod shares;
mod size;
pub mod store;
pub mod workloads;
