//! Looks for the settings of the allocator that serve a run best.
//!
//! ```text
//! Search ─► candidates ─► the caller runs them, on as many cores as it has ─► Tried ─► Search ─► … ─► Tuning
//! ```
//! The search goes in rounds: each setting by itself, then pairs, then finer values around the best. It runs nothing itself,
//! so that a caller can spread a round over its cores, show how far it is, and stop at any time with what there is.

mod advice;
mod candidate;
pub(crate) mod goal;
mod search;
mod tuning;

pub use candidate::Candidate;
pub use query::whatif::{Advice, Goal, Group, Tuning};
pub use search::{Search, Tried};
pub use tuning::tuning;
