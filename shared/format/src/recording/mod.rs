//! Reads whole recordings from the chunks of [`crate`].
//!
//! [`Decoder`] reads a file into a snapshot and findings; [`Recording`] holds what has been read of a stream so far.
//! [`Transcriber`] writes a recording anew while it reads it.

mod contents;
mod decoder;
pub mod findings;
mod transcriber;

pub use contents::DeviceUpdate;
pub use contents::{PositionedLoss, Recording, Track};
pub use decoder::Decoder;
pub use transcriber::{Transcribed, Transcriber};
