//! Why a collector or a batch is refused.

use wire::{Code, Refused};

use crate::access::Denied;
use crate::store::StoreError;

/// The reason for a refusal. Its text is sent to the collector.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The collector speaks another protocol version.
    #[error(
        "the collector speaks protocol {0} and this server protocol {known}; install the same release on both",
        known = wire::PROTOCOL
    )]
    Protocol(u32),
    /// The token is missing or wrong, or does not permit it.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The session's key is another collector's.
    #[error("the session belongs to another collector; start a new session")]
    Key,
    /// The session's name or key is malformed.
    #[error("a session's name and key have 26 characters of a-z and 2-7")]
    Session,
    /// The session has ended.
    #[error("the session has ended; start a new one")]
    Ended,
    /// A batch is missing.
    #[error("expected batch {wanted}, got batch {found}")]
    Order {
        /// The batch that is expected next.
        wanted: u64,
        /// The batch that was received.
        found: u64,
    },
    /// A message or chunk can't be read.
    #[error("{0}")]
    Malformed(String),
    /// A permanent limit is exceeded.
    #[error("{0}")]
    TooMuch(String),
    /// A temporary limit is exceeded.
    #[error("{0}; try again later")]
    Busy(&'static str),
    /// The session is being deleted, or was.
    #[error("the session is being deleted; try again later")]
    Removed,
    /// A newer connection took over the session.
    #[error("a newer connection took over this session")]
    Replaced,
    /// The server is stopping.
    #[error("the server is stopping; try again in a moment")]
    Restart,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl IngestError {
    /// Returns the code of the wire protocol.
    pub fn code(&self) -> Code {
        match self {
            Self::Protocol(_) => Code::Protocol,
            Self::Denied(denied) => denied.wire_code(),
            Self::Key => Code::Key,
            Self::Session => Code::Session,
            Self::Ended => Code::Ended,
            Self::Order { .. } => Code::Order,
            Self::Malformed(_) => Code::Malformed,
            Self::TooMuch(_) | Self::Store(StoreError::Full | StoreError::DiskFull) => Code::Full,
            Self::Store(_) => Code::Store,
            Self::Busy(_) | Self::Removed | Self::Replaced => Code::Busy,
            Self::Restart => Code::Restart,
        }
    }

    /// Returns the message that tells the collector.
    pub fn refused(&self) -> Refused {
        let retry = match self {
            Self::Denied(denied) => denied.is_temporary(),
            Self::Order { .. } | Self::Busy(_) | Self::Removed | Self::Replaced | Self::Restart | Self::Store(_) => {
                true
            }
            Self::Protocol(_) | Self::Key | Self::Session | Self::Ended | Self::Malformed(_) | Self::TooMuch(_) => {
                false
            }
        };
        Refused { code: self.code(), message: self.to_string(), retry }
    }

    /// Logs that a collector is refused. `session` must be a valid name, or empty before one is known: no other text of
    /// a client's enters the log.
    pub(super) fn log_refusal(&self, session: &str) {
        let code = word(self.code());
        match self {
            // Another connection of the same collector, or a stop: nothing is wrong.
            Self::Replaced | Self::Restart => tracing::debug!(session, code, "collector refused: {self}"),
            _ => tracing::warn!(session, code, "collector refused: {self}"),
        }
    }
}

/// Returns the name of a code on the wire and in the metrics.
pub fn word(code: Code) -> &'static str {
    match code {
        Code::Protocol => "protocol",
        Code::Token => "token",
        Code::Key => "key",
        Code::Session => "session",
        Code::Ended => "ended",
        Code::Malformed => "malformed",
        Code::Order => "order",
        Code::Full => "full",
        Code::Busy => "busy",
        Code::Restart => "restart",
        Code::Store => "store",
    }
}
