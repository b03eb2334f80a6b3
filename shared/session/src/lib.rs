//! An open file or running job: its devices, ready to answer questions. The page's worker, the command line and servers
//! use the same session.
//!
//! [`Session::answer`] is the only entry. Each question has a file in `questions`, which reads the [`Context`] of its device
//! and what earlier questions left in the device's [`Caches`]. A [`LiveSession`] is a session with a recording that still
//! grows; devices, indexes, summary and answers are the same.
//!
//! ```text
//! live ─► session ─► questions ─► foundations (states, terms, categories, coverage) ─► caches, context
//!                └─► device ─► facts
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod caches;
mod categories;
mod context;
mod copy;
mod coverage;
mod device;
mod facts;
mod failures;
mod live;
mod live_device;
mod origin;
pub mod preview;
mod questions;
mod requests;
mod session;
mod states;
mod terms;

pub use copy::SessionCopy;
pub use live::{LiveSession, Update};
pub use live_device::Trim;
pub use questions::examples;
pub use requests::RecordedRequests;
pub use session::Session;
