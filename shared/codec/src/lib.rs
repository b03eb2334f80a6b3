//! MessagePack maps and checksums, as recordings and messages have them.
#![forbid(unsafe_code)]

pub mod checksum;
pub mod msgpack;
