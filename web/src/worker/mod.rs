//! The way to a file or a session: each has a worker of its own, which reads it, indexes it and answers questions about
//! it, so that the page never waits.

pub mod api;
pub mod client;
pub mod entry;
mod failure;
mod live;
pub mod message;
mod reader;
mod warm;
