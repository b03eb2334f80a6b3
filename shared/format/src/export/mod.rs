//! Exports a [`Snapshot`](trace::Snapshot) in the formats that other programs read.
//!
//! The output goes to a sink piece by piece, so that a file of gigabytes is never held in memory as a whole.

mod pickle;
mod settings;
mod writer;

pub use pickle::pickle;
pub use settings::settings;
