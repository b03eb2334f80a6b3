#![doc = include_str!("WIRE.md")]

mod body;
mod decoder;
mod frame;
mod id;

pub use decoder::{Decoder, WireError};
pub use frame::{
    Ack, Ask, Batch, Code, Frame, Gap, Goodbye, HEAD_BYTES, Hello, PROTOCOL, Refused, State, Status, Watch, Welcome,
};
pub use id::{SESSION_CHARS, is_session, session_id};
