//! MessagePack maps and checksums, as recordings and messages have them.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod checksum;
pub mod msgpack;
