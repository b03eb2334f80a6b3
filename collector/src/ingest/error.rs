//! Why a batch is not taken.

use shared::wire::{Code, Refused};

use crate::store::StoreError;

/// See the module. What it says goes to the collector as it is.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// A collector of another protocol.
    #[error("this server speaks protocol {known} and not {0}; bring both to one version", known = shared::wire::PROTOCOL)]
    Protocol(u32),
    /// No token, or another one.
    #[error("this server wants the token that it was started with")]
    Token,
    /// The key of another collector.
    #[error("the session belongs to another collector")]
    Key,
    /// A session's name that is none.
    #[error("a session's name has 26 characters of a-z and 2-7")]
    Session,
    /// The session has ended.
    #[error("the session has ended; nothing may be added to it")]
    Ended,
    /// A batch was left out.
    #[error("batch {wanted} is wanted, and {found} came")]
    Order {
        /// The one that is wanted next.
        wanted: u64,
        /// The one that came.
        found: u64,
    },
    /// A frame or a chunk that is none.
    #[error("{0}")]
    Malformed(String),
    /// A bound that won't move.
    #[error("{0}")]
    TooMuch(String),
    /// Too many at once.
    #[error("{0}; try again later")]
    Busy(&'static str),
    /// Another connection speaks for the session now.
    #[error("another connection of this session took over")]
    Replaced,
    /// The server is being stopped.
    #[error("the server stops; try again in a moment")]
    Restart,
    /// What the store says.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl IngestError {
    /// As the wire has it.
    pub fn code(&self) -> Code {
        match self {
            Self::Protocol(_) => Code::Protocol,
            Self::Token => Code::Token,
            Self::Key => Code::Key,
            Self::Session => Code::Session,
            Self::Ended => Code::Ended,
            Self::Order { .. } => Code::Order,
            Self::Malformed(_) => Code::Malformed,
            Self::TooMuch(_) | Self::Store(_) => Code::Full,
            Self::Busy(_) | Self::Replaced => Code::Busy,
            Self::Restart => Code::Restart,
        }
    }

    /// The frame that says so.
    pub fn refused(&self) -> Refused {
        let retry = match self {
            Self::Order { .. } | Self::Busy(_) | Self::Replaced | Self::Restart | Self::Store(_) => true,
            Self::Protocol(_)
            | Self::Token
            | Self::Key
            | Self::Session
            | Self::Ended
            | Self::Malformed(_)
            | Self::TooMuch(_) => false,
        };
        Refused { code: self.code(), message: self.to_string(), retry }
    }
}

/// The word for a code, as the wire and the metrics have it.
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
    }
}
