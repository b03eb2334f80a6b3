//! The library that a training job loads: C functions around the recorder, the publisher and the caching allocator,
//! without the server.
//!
//! Every C function catches panics, so that none unwinds into the caller. Imports go one way: `agent` and `allocator` →
//! `job` → `config`, and all of them → `guard`, `clock` and
//! `columns`, which import no sibling.

// This is the C boundary. Each unsafe block has a SAFETY comment.
#![allow(unsafe_code)]

pub mod agent;
pub mod allocator;
pub mod clock;
pub mod columns;
pub mod config;
pub mod guard;
pub mod job;
