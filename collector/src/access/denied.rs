//! Reasons for denying access.

use trace::units::counted;
use wire::Code;

use super::Role;

/// The reason of a denial. Its text is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No token was shown.
    #[error("the token is missing or wrong; use one that this server knows")]
    Missing,
    /// No token has this text.
    #[error("the token is missing or wrong; use one that this server knows")]
    Wrong,
    /// The token is no longer valid.
    #[error("the token has expired; use a newer one")]
    Expired,
    /// The token was removed from the server's file.
    #[error("the token was revoked; use another one")]
    Revoked,
    /// The token is valid, and not for this.
    #[error("the token lacks the role {0}; use a token that has it")]
    Role(Role),
    /// Too many wrong tokens came from the address. Holds the seconds until the next one is looked at.
    #[error("too many wrong tokens came from this address; try again in {0} s")]
    Slowed(u64),
    /// The server has no token, and was started by another user of this machine.
    #[error(
        "this server answers only the user who started it; start it with --token-file FILE and use that token, or start \
         it with --allow-other-users"
    )]
    User,
    /// The server was given no tokens, and its secret was not shown.
    #[error(
        "this takes the server's secret, which only programs of the user who runs it can read; run `vramscope FILE` as that \
         user on its machine, or drop the file on the page"
    )]
    Secret,
    /// The token's quota of live sessions is used up.
    #[error(
        "the token has {live}, which is its quota; try again when one has ended",
        live = counted(*.0 as u64, "live session")
    )]
    Sessions(usize),
    /// Too many sessions were begun. Holds the seconds until the next one may begin.
    #[error("too many sessions were begun with this token; try again in {0} s")]
    SessionRate(u64),
}

impl Denied {
    /// Returns the code for programs in an error of the API.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing | Self::Wrong | Self::Expired | Self::Revoked => "token",
            Self::Role(_) => "role",
            Self::User => "user",
            Self::Secret => "secret",
            Self::Slowed(_) | Self::SessionRate(_) => "rate",
            Self::Sessions(_) => "quota",
        }
    }

    /// Returns the outcome in the audit log.
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Missing => "no token",
            Self::Wrong => "wrong token",
            Self::Expired => "expired token",
            Self::Revoked => "revoked token",
            Self::Role(_) => "role",
            Self::Slowed(_) => "slowed",
            Self::User => "user",
            Self::Secret => "no secret",
            Self::Sessions(_) => "quota",
            Self::SessionRate(_) => "rate",
        }
    }

    /// Returns the code on the wire. A collector of any version reads it.
    pub fn wire_code(&self) -> Code {
        if self.is_temporary() { Code::Busy } else { Code::Token }
    }

    /// Whether to try again with the same token.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Slowed(_) | Self::Sessions(_) | Self::SessionRate(_))
    }

    /// Returns the seconds to wait, where they are known.
    pub fn retry_seconds(&self) -> Option<u64> {
        match self {
            Self::Slowed(seconds) | Self::SessionRate(seconds) => Some(*seconds),
            _ => None,
        }
    }

    /// Whether somebody tried to show who they are and failed, unlike somebody who is known and may not do this.
    pub fn is_failed_login(&self) -> bool {
        matches!(self, Self::Wrong | Self::Expired | Self::Revoked | Self::Slowed(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_of_sessions_is_counted_in_words() {
        for (count, wanted) in [(1, "has 1 live session, which"), (2_000, "has 2,000 live sessions, which")] {
            let text = Denied::Sessions(count).to_string();
            assert!(text.contains(wanted), "{text}");
        }
    }
}
