//! The way to a file: each has a worker of its own, which reads it, indexes it and answers questions about it, so that
//! the page never waits.

pub mod client;
pub mod entry;
mod failure;
pub mod message;
mod reader;
mod warm;
