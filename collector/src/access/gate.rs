//! The tokens of a server, and the check of what clients show.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use shared::limits::AccessLimits;
use shared::units::counted;

use super::peer_user::{PeerSocket, Users};
use super::token::Token;
use super::tokens::Tokens;
use super::{Caller, Denied, Grant, TokenEntry};
use crate::clock::now_us;

/// The name of the grant that everybody has on a server without tokens.
pub(super) const ANYONE: &str = "open";
/// The name of the token of a server that has one.
const DEFAULT: &str = "default";
/// The time between two looks at the tokens file. A change is read at the second look that finds it unchanged.
const RELOAD_CHECK: Duration = Duration::from_secs(1);

/// Who may use a server. [`Default`] lets everybody do everything.
#[derive(Debug)]
pub struct Access(Door);

/// What a client needs.
#[derive(Debug)]
enum Door {
    /// No token. Where the system can tell users apart, `users` are those who are let in.
    Open { anyone: Grant, users: Option<Users> },
    /// A token.
    Tokens(Box<Tokens>),
}

impl Default for Access {
    fn default() -> Self {
        Self::open(None)
    }
}

impl Access {
    fn open(users: Option<Users>) -> Self {
        let anyone = Token::new(TokenEntry::unlimited(ANYONE, ""), AccessLimits::default(), now_us);
        Self(Door::Open { anyone: Grant::new(anyone), users })
    }

    /// Creates the access to a server without tokens that listens on a loopback address: for the user who runs this
    /// process if the system tells whose a connection is, or else for every user of the machine.
    pub fn for_this_user(listen: IpAddr) -> Self {
        Self::open(Users::detect(listen))
    }

    /// Creates the access to a server with one token, which has every role.
    pub fn with_token(token: &str) -> Result<Self, String> {
        let entries = vec![TokenEntry::unlimited(DEFAULT, token)];
        Ok(Self(Door::Tokens(Box::new(Tokens::of(entries, AccessLimits::default(), now_us)?))))
    }

    /// Creates the access to a server whose tokens are in a file. Returns a sentence for people if the file is invalid.
    pub fn with_file(path: &Path) -> Result<Self, String> {
        Ok(Self(Door::Tokens(Box::new(Tokens::of_file(path, AccessLimits::default(), now_us)?))))
    }

    /// Whether a token is required.
    pub fn wants_token(&self) -> bool {
        matches!(self.0, Door::Tokens(_))
    }

    /// Whether only the user who runs this process may use the server, and the administrator of the machine.
    pub fn is_for_this_user(&self) -> bool {
        matches!(self.0, Door::Open { users: Some(_), .. })
    }

    /// Returns the token with which the server publishes its own demo, if it requires one.
    pub fn own_token(&self) -> Option<&str> {
        match &self.0 {
            Door::Tokens(tokens) => Some(tokens.own()),
            Door::Open { .. } => None,
        }
    }

    /// Returns how access is granted, as the end of a sentence.
    pub fn describe(&self) -> String {
        match &self.0 {
            Door::Open { users: Some(_), .. } => "open to this user only".to_owned(),
            Door::Open { users: None, .. } => "open to every user of this machine".to_owned(),
            Door::Tokens(tokens) => match tokens.in_file() {
                None => "with a token".to_owned(),
                Some(count) => format!("with {}", counted(count as u64, "token")),
            },
        }
    }

    /// Returns the names of the tokens with a quota of bytes, and that quota.
    pub fn byte_quotas(&self) -> Vec<(String, u64)> {
        match &self.0 {
            Door::Open { .. } => Vec::new(),
            Door::Tokens(tokens) => tokens.byte_quotas(),
        }
    }

    /// Returns the grant of a client that showed no token, on a server that requires none. May read a file of the system.
    pub fn anyone(&self, socket: Option<&PeerSocket>) -> Result<Grant, Denied> {
        match &self.0 {
            Door::Tokens(_) => Err(Denied::Missing),
            Door::Open { anyone, users: None } => Ok(anyone.clone()),
            Door::Open { anyone, users: Some(users) } => match socket {
                Some(socket) if users.has(socket) => Ok(anyone.clone()),
                _ => Err(Denied::User),
            },
        }
    }

    /// Returns the grant of a token that an address shows. Tokens are compared in constant time.
    pub fn check(&self, token: &str, peer: IpAddr) -> Result<Grant, Denied> {
        match &self.0 {
            Door::Open { .. } => self.anyone(None),
            Door::Tokens(tokens) => tokens.check(token, peer),
        }
    }

    /// Returns the grant of a caller. `token` is the one in its first message, which counts if its request showed none.
    pub fn identify(&self, caller: &Caller, token: &str) -> Result<Grant, Denied> {
        match &caller.grant {
            Err(denied) => Err(denied.clone()),
            Ok(Some(grant)) => Ok(grant.clone()),
            Ok(None) => self.check(token, caller.peer),
        }
    }

    /// Reads the tokens file again whenever it changes. Never ends.
    pub async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(RELOAD_CHECK).await;
            let access = Arc::clone(&self);
            let look = move || {
                if let Door::Tokens(tokens) = &access.0 {
                    tokens.reload();
                }
            };
            if let Err(error) = tokio::task::spawn_blocking(look).await {
                tracing::error!(%error, "looking at the tokens file failed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::access::Role;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const TOKEN: &str = "token-of-everybody";

    #[test]
    fn the_single_token_and_no_token_allow_everything() {
        let single = Access::with_token(TOKEN).unwrap();
        let grant = single.check(TOKEN, HERE).unwrap();
        assert_eq!((grant.name(), grant.roles().to_string()), ("default", "ingest,read,share,admin".to_owned()));
        assert_eq!(single.check("", HERE).unwrap_err(), Denied::Missing);
        let own = single.check(single.own_token().unwrap(), HERE).unwrap();
        assert_eq!((own.check(Role::Ingest), own.check(Role::Read)), (Ok(()), Err(Denied::Role(Role::Read))));
        let open = Access::default();
        assert_eq!(open.check("anything", HERE).unwrap().name(), "open");
        assert_eq!(
            (single.describe(), open.describe()),
            ("with a token".into(), "open to every user of this machine".into())
        );
    }
}
