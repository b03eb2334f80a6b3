//! Repeats the requests of a trace under other settings of the allocator, or on another device.
//!
//! ```text
//! trace ─► requests ─┬─► the settings of the recording ─► self-check: does every address come out as recorded?
//!                    └─► other settings ───────────────► outcome
//! ```
//! [`Requests`] are what the program asked for: sizes, streams, pools and frees, and the calls of `empty_cache` that the
//! trace shows. What the allocator answered is left out; [`Requests::check`] lets the allocator answer again and compares.
//! Only as far as that agrees can an [`Outcome`] under other settings be trusted. [`Requests::edited`] are the requests of a
//! program that keeps less.
//!
//! A trace leaves some things open, which are assumed:
//! - Memory that was released before a request, without a stack that shows the caller, was released by `empty_cache`,
//!   unless the device had no room for what the request took. How much room it had is known from a request that failed.
//! - A block that was freed and cached without any event between had no other stream to wait for.
//! - Streams reach the end of their work at the recorded place, or when the allocator waits for them.
//! - Segments that exist at the start were reserved in the order of their addresses.
//! - Private pools that a trace doesn't name are inferred from what the allocator did; one was given up when its memory is
//!   released.
//! - A call of `empty_cache` that released nothing leaves no trace.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod baseline;
mod bounds;
mod calls;
mod capacity;
mod device;
mod edit;
mod ledger;
mod openings;
mod outcome;
mod pools;
mod proof;
mod reading;
mod releases;
mod requests;
mod reserved_curve;
mod run_trace;
mod runner;
mod self_check;
mod terms;
pub mod tune;

pub use baseline::{Baseline, BaselineError};
pub use calls::Call;
pub use capacity::{CapacitySearch, GRANULE};
pub use edit::{Edit, EditAct};
pub use query::whatif::{Bounds, CARDS, CONTEXT, Card, Difference, Outcome, SelfCheck, Why};
pub use requests::Requests;
pub use reserved_curve::ReservedCurve;
pub use run_trace::RunTrace;
pub use terms::{AMPLE, Terms};
