//! Reads whole recordings from the chunks of [`crate::format`].
//!
//! [`Decoder`] reads a file into a snapshot and findings; [`Recording`] holds what has been read of a stream so far.

mod decoder;
pub(crate) mod findings;
mod recording;

pub use decoder::Decoder;
pub(crate) use recording::DeviceUpdate;
pub use recording::{PositionedLoss, Recording, Track};
