//! A token of the server, with its current usage.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use trace::limits::AccessLimits;

use super::usage::Usage;
use super::{Quotas, Roles, Secret, TokenEntry};

/// Returns the time in microseconds since the epoch.
pub(super) type Clock = fn() -> i64;

/// A token. Its name and its secret never change; its terms do when the tokens file changes.
pub(super) struct Token {
    pub(super) name: String,
    pub(super) secret: Secret,
    pub(super) terms: watch::Sender<Terms>,
    pub(super) usage: Usage,
    pub(super) limits: AccessLimits,
    pub(super) clock: Clock,
}

/// The rights of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) roles: Roles,
    pub(super) quotas: Quotas,
    pub(super) expires_us: Option<i64>,
    pub(super) is_revoked: bool,
}

impl Terms {
    pub(super) fn of(entry: &TokenEntry) -> Self {
        let TokenEntry { roles, quotas, expires_us, .. } = *entry;
        Self { roles, quotas, expires_us, is_revoked: false }
    }
}

impl Token {
    pub(super) fn new(entry: TokenEntry, limits: AccessLimits, clock: Clock) -> Arc<Self> {
        let terms = watch::Sender::new(Terms::of(&entry));
        let TokenEntry { name, secret, .. } = entry;
        Arc::new(Self { name, secret, terms, usage: Usage::default(), limits, clock })
    }

    /// Whether an entry describes this token, perhaps with other terms.
    pub(super) fn is_of(&self, entry: &TokenEntry) -> bool {
        self.name == entry.name && self.secret.is_same(&entry.secret)
    }

    /// Ends every use of the token.
    pub(super) fn revoke(&self) {
        self.terms.send_modify(|terms| terms.is_revoked = true);
    }
}

/// Shows the name only.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("name", &self.name).finish_non_exhaustive()
    }
}
