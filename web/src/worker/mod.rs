//! The workers of the engine, as the page sees them: each serves one file or one session, so that the page never waits.

pub mod client;

mod answers;
mod rerun;

pub use protocol::message;
pub use rerun::{CurvesFor, set_whatif_starter};
