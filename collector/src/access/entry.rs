//! One line of the tokens file.

use super::{Quotas, Role, Roles, Secret};

/// The name of every grant on a server that was given no tokens.
pub(super) const ANYONE: &str = "open";
/// The name of the token that the server makes for its own demo.
pub(super) const SERVER: &str = "server";
/// Names of the server's own grants, which no token of an operator has.
pub(super) const RESERVED: [&str; 2] = [ANYONE, SERVER];

/// A token as an operator describes it.
#[derive(Clone, Debug)]
pub struct TokenEntry {
    /// The name, for people and for the audit log.
    pub name: String,
    /// The hash of the token.
    pub secret: Secret,
    /// What it may do.
    pub roles: Roles,
    /// How much it may use.
    pub quotas: Quotas,
    /// When it expires, in microseconds since the epoch.
    pub expires_us: Option<i64>,
}

impl TokenEntry {
    /// Creates a token with every role and no limits.
    pub fn unlimited(name: &str, token: &str) -> Self {
        Self {
            name: name.to_owned(),
            secret: Secret::of(token),
            roles: Roles::all(),
            quotas: Quotas::default(),
            expires_us: None,
        }
    }

    /// Creates a token with every role but `admin` and no limits.
    pub(super) fn without_admin(name: &str, token: &str) -> Self {
        let roles = Role::ALL.into_iter().filter(|role| *role != Role::Admin).collect();
        Self { roles, ..Self::unlimited(name, token) }
    }

    /// Creates a token with one role and no limits.
    pub(super) fn of_role(name: &str, token: &str, role: Role) -> Self {
        Self { roles: [role].into_iter().collect(), ..Self::unlimited(name, token) }
    }
}
