//! Who may do what: tokens with roles and quotas, and what happens to those who have none.
//!
//! ```text
//! token in a header, a hello or a watch ─► Access::check ─► Grant (name, roles, quotas)  ─► a route, a session
//!                                              │
//!                                              └─► Denied ─► 401, 403, 429 or a refusal, and a line of the audit log
//! ```
//! A server is given one token, a file of tokens, or none. Without a token it listens on loopback only, and answers
//! connections of the user who started it where the system can tell whose they are; elsewhere it makes a token itself. A
//! connection of the user may still carry the requests of a stranger, by a tunnel or a proxy. So what reaches beyond the
//! server's own data, such as the files of its machine, takes a secret that only the user's own programs can read ([`Keys`]).
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
mod private_folder;
mod quotas;
mod rates;
mod role;
mod seat;
mod secret;
mod token;
mod tokens;
mod tokens_file;
mod usage;

pub use caller::Caller;
pub use denied::Denied;
pub use entry::TokenEntry;
pub use gate::{Access, Keys};
pub use grant::Grant;
pub use pauses::Pauses;
pub use peer_user::PeerSocket;
pub use private_file::{read_own, read_private, write_private};
pub use private_folder::{create_private_folder, is_private_folder};
pub use quotas::Quotas;
pub use rates::Rates;
pub use role::{Role, Roles};
pub use seat::Seat;
pub use secret::{Secret, fresh_token};
pub(crate) use tokens_file::{Limit, TOKEN_CHARS, TokenLimits, check_name, check_token};
