//! From collectors into the store.
//!
//! ```text
//! socket or request ─► Conversation ─► Pipe (bounded) ─► a thread: Desk ─► store, bus
//!        ▲                                                    │
//!        └──────────── acknowledged, refused ◄────────────────┘
//! ```
//! Whoever sends more than the disk takes waits, and nobody else does: each collector has a queue and a thread of its own.
//! Batches that came together are made durable together, and then acknowledged.

mod clock;
mod conversation;
mod counters;
mod desk;
mod error;
mod keep;
mod key;
mod pipe;
mod session;
mod sessions;
mod view;

pub use clock::now_us;
pub use conversation::{Conversation, News};
pub use counters::Counters;
pub use error::{IngestError, word};
pub use keep::Keep;
pub use key::Secret;
pub use pipe::Reply;
pub use session::Session;
pub use sessions::Sessions;
pub use view::View;
