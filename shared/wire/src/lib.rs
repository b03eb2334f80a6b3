#![doc = include_str!("WIRE.md")]
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]
// Tests count in small numbers.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation))]

mod body;
mod decoder;
mod id;
mod message;

pub use decoder::{Decoder, WireError};
pub use id::{LINK_CHARS, SESSION_CHARS, is_link_token, is_session, link_token, session_id};
pub use message::{
    Ack, Ask, Batch, Code, Goodbye, HEAD_BYTES, Hello, Message, PROTOCOL, Refused, SessionState, Skipped, Status,
    Watch, Welcome,
};
