//! Who may use a server: everybody, one user, or whoever shows a token.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trace::limits::AccessLimits;
use trace::units::counted;

use super::entry::ANYONE;
use super::peer_user::{PeerSocket, Users};
use super::token::Token;
use super::tokens::Tokens;
use super::{Caller, Denied, Grant, TokenEntry, fresh_token};
use crate::clock::now_us;

/// The name of the token of a server that has one.
const DEFAULT: &str = "default";
/// The time between two looks at the tokens file. A change is read at the second look that finds it unchanged.
const RELOAD_CHECK: Duration = Duration::from_secs(1);

/// Who may use a server. [`Default`] lets everybody do everything but what takes the role `admin`.
#[derive(Debug)]
pub struct Access {
    /// Who is let in without a token, if anybody is.
    open: Option<Open>,
    /// The tokens that are accepted, if there are any.
    tokens: Option<Box<Tokens>>,
    /// The keys that the server made for its own user, if it was given no tokens.
    keys: Option<Keys>,
}

/// Those who are let in without a token.
#[derive(Debug)]
struct Open {
    anyone: Grant,
    /// The users who are let in; `None` stands for all.
    users: Option<Users>,
}

/// Secrets that a server makes at its start for the programs of its own user, who read them from the server's announcement;
/// nobody else can read that. The user of a connection proves less, since a tunnel or a proxy forwards requests of others.
#[derive(Clone)]
pub struct Keys {
    /// The token with the role `admin`, with which files of the machine are opened.
    pub secret: String,
    /// The token with every other role. Every request needs one of the two where the system doesn't tell users apart;
    /// `None` where it does.
    pub token: Option<String>,
}

/// Prints neither.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Default for Access {
    fn default() -> Self {
        Self { open: Some(Open::to(None)), tokens: None, keys: None }
    }
}

impl Open {
    fn to(users: Option<Users>) -> Self {
        let anyone = Token::new(TokenEntry::without_admin(ANYONE, ""), AccessLimits::default(), now_us);
        Self { anyone: Grant::new(anyone), users }
    }
}

impl Access {
    /// Creates the access to a server without tokens that listens on a loopback address, for the user who runs this process.
    /// Their connections are let in if the system tells whose a connection is; otherwise every request needs a token that is
    /// made here. Returns a sentence for people on failure.
    pub fn for_this_user(listen: IpAddr) -> Result<Self, String> {
        Self::for_users(Users::detect(listen))
    }

    /// Creates the access that [`Self::for_this_user`] creates where the system does not tell users apart.
    pub fn for_this_user_by_token() -> Result<Self, String> {
        Self::for_users(None)
    }

    fn for_users(users: Option<Users>) -> Result<Self, String> {
        let token = if users.is_some() { None } else { Some(fresh_token()?) };
        let keys = Keys { secret: fresh_token()?, token };
        let mut entries = vec![TokenEntry::unlimited(ANYONE, &keys.secret)];
        entries.extend(keys.token.as_deref().map(|token| TokenEntry::without_admin(ANYONE, token)));
        let tokens = Box::new(Tokens::of(entries, AccessLimits::default(), now_us)?);
        Ok(Self { open: users.map(|users| Open::to(Some(users))), tokens: Some(tokens), keys: Some(keys) })
    }

    fn by(tokens: Tokens) -> Self {
        Self { open: None, tokens: Some(Box::new(tokens)), keys: None }
    }

    /// Creates the access to a server with one token, which has every role.
    pub fn with_token(token: &str) -> Result<Self, String> {
        let entries = vec![TokenEntry::unlimited(DEFAULT, token)];
        Ok(Self::by(Tokens::of(entries, AccessLimits::default(), now_us)?))
    }

    /// Creates the access to a server whose tokens are in a file. Returns a sentence for people if the file is invalid.
    pub fn with_file(path: &Path) -> Result<Self, String> {
        Ok(Self::by(Tokens::of_file(path, AccessLimits::default(), now_us)?))
    }

    /// Whether every request needs a token.
    pub fn wants_token(&self) -> bool {
        self.open.is_none()
    }

    /// Whether an operator gave the server tokens.
    pub fn was_given_tokens(&self) -> bool {
        self.open.is_none() && self.keys.is_none()
    }

    /// Returns the keys for the programs of the server's own user; `None` if others may use it too.
    pub fn keys(&self) -> Option<&Keys> {
        self.keys.as_ref()
    }

    /// Returns the token with which the server publishes its own demo, if it requires one.
    pub fn own_token(&self) -> Option<&str> {
        self.tokens.as_ref().filter(|_| self.wants_token()).map(|tokens| tokens.own())
    }

    /// Returns how access is granted, as the end of a sentence.
    pub fn describe(&self) -> String {
        match (&self.open, &self.keys) {
            (Some(Open { users: Some(_), .. }), _) => {
                "open to you, and to anyone who can reach a tunnel of yours".to_owned()
            }
            (Some(Open { users: None, .. }), _) => "open to every user of this machine".to_owned(),
            (None, Some(_)) => "opened by a link with a token".to_owned(),
            (None, None) => match self.tokens.as_ref().and_then(|tokens| tokens.in_file()) {
                None => "with a token".to_owned(),
                Some(count) => format!("with {}", counted(count as u64, "token")),
            },
        }
    }

    /// Returns the names of the tokens with a quota of bytes, and that quota.
    pub fn byte_quotas(&self) -> Vec<(String, u64)> {
        self.tokens.as_ref().map(|tokens| tokens.byte_quotas()).unwrap_or_default()
    }

    /// Returns the grant of a client that showed no token, on a server that requires none. May read a file of the system.
    pub fn anyone(&self, socket: Option<&PeerSocket>) -> Result<Grant, Denied> {
        match &self.open {
            None => Err(Denied::Missing),
            Some(Open { anyone, users: None }) => Ok(anyone.clone()),
            Some(Open { anyone, users: Some(users) }) => match socket {
                Some(socket) if users.has(socket) => Ok(anyone.clone()),
                _ => Err(Denied::User),
            },
        }
    }

    /// Returns the grant of a token that an address shows. Tokens are compared in constant time.
    pub fn check(&self, token: &str, peer: IpAddr) -> Result<Grant, Denied> {
        match &self.tokens {
            Some(tokens) => tokens.check(token, peer),
            None => self.anyone(None),
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
                if let Some(tokens) = &access.tokens {
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
        let denied = open.anyone(None).unwrap().check(Role::Admin).unwrap_err();
        assert_eq!((denied, open.anyone(None).unwrap().check_managing()), (Denied::Secret, Ok(())));
        assert_eq!(open.check("anything", HERE).unwrap().name(), "open");
        assert_eq!(
            (single.describe(), open.describe()),
            ("with a token".into(), "open to every user of this machine".into())
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_secret_gives_the_role_admin() {
        let private = Access::for_this_user(HERE).unwrap();
        let Keys { secret, token } = private.keys().unwrap();
        assert!(token.is_none() && secret.len() == 64 && !private.wants_token());
        let owner = private.check(secret, HERE).unwrap();
        assert_eq!((owner.check(Role::Admin), owner.name()), (Ok(()), ANYONE));
        assert_eq!(private.check("wrong", HERE).unwrap_err(), Denied::Wrong);
        // A connection that the system tells nothing about.
        assert_eq!(private.anyone(None).unwrap_err(), Denied::User);
        assert!(!format!("{private:?}").contains(&**secret));
    }

    #[test]
    fn where_users_are_not_told_apart_every_request_needs_a_token() {
        let private = Access::for_this_user_by_token().unwrap();
        let keys = private.keys().unwrap().clone();
        let token = keys.token.unwrap();
        assert!(private.wants_token() && token != keys.secret);
        assert_eq!(private.anyone(None).unwrap_err(), Denied::Missing);
        let page = private.check(&token, HERE).unwrap();
        assert_eq!((page.roles().to_string(), page.check_managing()), ("ingest,read,share".to_owned(), Ok(())));
        assert_eq!(page.check(Role::Admin), Err(Denied::Secret));
        assert_eq!(private.check(&keys.secret, HERE).unwrap().check(Role::Admin), Ok(()));
        assert_eq!(private.describe(), "opened by a link with a token");
    }
}
