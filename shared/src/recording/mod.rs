//! Reads whole recordings from the chunks of [`crate::format`].
//!
//! [`Decoder`] reads a file into a snapshot and findings; [`Recording`] holds what has been read of a stream so far.

mod contents;
mod decoder;
pub(crate) mod findings;

pub(crate) use contents::DeviceUpdate;
pub use contents::{PositionedLoss, Recording, Track};
pub use decoder::Decoder;
