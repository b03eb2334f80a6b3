//! Who may do what: tokens with roles and quotas, and what happens to those who have none.
//!
//! ```text
//! token in a header, a hello or a watch ─► Access::check ─► Grant (name, roles, quotas)  ─► a route, a session
//!                                              │
//!                                              └─► Denied ─► 401, 403, 429 or a refusal, and a line of the audit log
//! ```
//! A server has one token, a file of tokens, or none. Without a token it listens on loopback only, and answers the user who
//! started it where the system can tell who is asking.
//!
//! The file of tokens is read again when it changes. A [`Grant`] always reads the current terms of its token, so that a
//! token that is removed from the file ends the connections that use it.

mod allowance;
pub mod audit;
mod caller;
mod denied;
mod entry;
mod expiry;
mod gate;
mod grant;
mod guesses;
mod pauses;
mod peer_user;
mod private_file;
mod quotas;
mod rates;
mod role;
mod secret;
mod token;
mod tokens;
mod tokens_file;
mod usage;

pub use caller::Caller;
pub use denied::Denied;
pub use entry::TokenEntry;
pub use gate::Access;
pub use grant::Grant;
pub use pauses::Pauses;
pub use peer_user::PeerSocket;
pub use private_file::read_private;
pub use quotas::Quotas;
pub use rates::Rates;
pub use role::{Role, Roles};
pub use secret::{Secret, fresh_token};
pub(crate) use tokens_file::{Limit, TOKEN_CHARS, TokenLimits, check_name, check_token};
pub use usage::Seat;
