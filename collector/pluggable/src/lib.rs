//! The library that a training job loads: C functions around the recorder, the publisher and the caching allocator,
//! without the server.
//!
//! Every function that C calls catches what panics: nothing unwinds into the caller.

// The C boundary; each use has a note.
#![allow(unsafe_code)]

pub mod agent;
pub mod allocator;
pub mod columns;
pub mod config;
pub mod guard;
pub mod job;
