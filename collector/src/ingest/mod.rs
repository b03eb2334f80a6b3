//! Receives what collectors send and writes it to the store.
//!
//! ```text
//! socket or request ─► Conversation ─► Pipe (bounded) ─► a thread: SessionWriter ─► store, bus
//!        ▲                                                    │
//!        └──────────── acknowledged, refused ◄────────────────┘
//! ```
//! Each collector has a queue and a thread of its own, so one that sends faster than the disk writes delays nobody
//! else. Batches that arrive together are synced together, and acknowledged after that.

mod admission;
mod conversation;
mod counters;
mod error;
mod gaps;
#[cfg(test)]
mod log_tests;
mod memory;
mod pipe;
mod presence;
mod retention;
mod retention_clock;
mod session;
mod sessions;
mod upkeep;
mod view;
mod writer;

pub use conversation::{Conversation, Outgoing};
pub use counters::Counters;
pub use error::{IngestError, word};
pub use gaps::DeviceGaps;
pub use pipe::Reply;
pub use presence::Viewing;
pub use retention::Retention;
pub use session::Session;
pub use sessions::Sessions;
pub use view::View;
pub use writer::{SegmentHealth, SessionHealth, inspect, repair};
