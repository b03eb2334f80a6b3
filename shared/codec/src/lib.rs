//! MessagePack maps and checksums, as recordings and messages have them.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]
// Tests count in small numbers.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation))]

pub mod checksum;
pub mod msgpack;
