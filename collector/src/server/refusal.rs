//! Refusals of collectors and viewers: counted, logged, and sent.

use shared::wire::Message;

use super::error::chain;
use crate::access::{Caller, audit};
use crate::ingest::{IngestError, Sessions, word};

/// Counts and logs the refusal of a `peer` (a collector, or a viewer of a session). Returns the message to send.
pub(super) fn refuse(
    sessions: &Sessions,
    peer: &'static str,
    caller: &Caller,
    session: Option<&str>,
    error: &IngestError,
) -> Message<'static> {
    let (refused, cause) = (error.refused(), chain(error));
    sessions.counters.refuse(refused.code);
    macro_rules! event {
        ($level:expr) => {
            tracing::event!($level, peer, session, code = word(refused.code), error = &*cause, "refused")
        };
    }
    let id = session.unwrap_or_default();
    match error {
        IngestError::Denied(denied) => audit::denied(caller, id, denied),
        _ => audit::refused(caller, id, word(refused.code)),
    }
    match error {
        IngestError::Store(_) => event!(tracing::Level::ERROR),
        // Every peer gets this one when the server stops.
        IngestError::Restart => event!(tracing::Level::DEBUG),
        _ => event!(tracing::Level::WARN),
    }
    Message::Refused(refused)
}
