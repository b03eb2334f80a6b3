//! The messages between the page and the workers of its engine.
//!
//! Page, engine and what-if are WebAssembly modules that share no memory. This crate is all that they have in common: the
//! messages between them, the sentences for what can fail on either side, and how both ask the server for something.

pub mod failure;
pub mod message;
pub mod server;
pub mod whatif;
