//! The native side of Vramscope: the server that hands out the page, the command line, and the workloads that they show.
//!
//! What is absent: no format, no replay and no analysis lives here. All of that is in `shared`, where the page runs
//! the same code; this crate reads files, opens sockets and prints.

pub mod cli;
pub mod driver;
pub mod script;
pub mod server;
pub mod workloads;
