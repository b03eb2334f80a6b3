//! Refusals of collectors and viewers: counted, logged, and sent.

use wire::Message;

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

#[cfg(test)]
mod tests {
    use std::io;

    use wire::Code;

    use super::*;
    use crate::store::StoreError;

    #[test]
    fn only_a_full_store_is_called_full() {
        for (error, code) in [
            (StoreError::Full, Code::Full),
            (StoreError::DiskFull, Code::Full),
            (StoreError::Damaged("a segment".to_owned()), Code::Store),
            (StoreError::Io(io::Error::other("a disk")), Code::Store),
            (StoreError::Missing, Code::Store),
        ] {
            let refused = IngestError::from(error).refused();
            // Collectors keep what they have: the store may be mended.
            assert_eq!((refused.code, refused.retry), (code, true), "{}", refused.message);
        }
    }
}
