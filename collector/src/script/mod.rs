//! Operation scripts: what a program did to the allocator, replayed on a simulated device under any PyTorch release.
//!
//! A script is a JSON object: `config` (settings string), `capacity_bytes`, `va` (`firstfit` or `bump`) and `ops`, a
//! list of [`Op`]s. What comes out says of each request where it went, and of each step what the allocator recorded,
//! with segments and all statistics at the script's snapshots and at its end.

mod message;
mod objects;
mod op;
mod output;
mod run;
mod streams;

pub use op::{Op, Script, ScriptError};
pub use output::Output;
pub use run::run;
