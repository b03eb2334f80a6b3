#![doc = include_str!("SCRIPT.md")]

mod objects;
mod op;
mod output;
mod runner;
mod streams;

pub use op::{Op, Script, ScriptError};
pub use output::Output;
pub use runner::execute;
