//! The tokens of a server, and the check of what clients show.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use shared::limits::AccessLimits;
use shared::units::counted;

use super::guesses::{Guesses, Wrong};
use super::peer_user::{PeerSocket, Users};
use super::private_file::Stamp;
use super::token::{Clock, Terms, Token};
use super::usage::whole_seconds;
use super::{Caller, Denied, Grant, Role, Secret, TokenEntry, read_private, secret, tokens_file};
use crate::ingest::now_us;

/// The name of the grant that everybody has on a server without tokens.
pub(super) const ANYONE: &str = "open";
/// The name of the token that the server makes for its own demo.
pub(super) const SERVER: &str = "server";
/// The name of the token of a server that has one.
const DEFAULT: &str = "default";
/// The time between two looks at the tokens file. A change is read at the second look that finds it unchanged.
const RELOAD_CHECK: Duration = Duration::from_secs(1);

/// Who may use a server. [`Default`] lets everybody do everything.
#[derive(Debug)]
pub struct Access {
    door: Door,
    limits: AccessLimits,
    clock: Clock,
}

/// What a client needs.
#[derive(Debug)]
enum Door {
    /// No token. Where the system can tell users apart, `users` are those who are let in.
    Open { anyone: Grant, users: Option<Users> },
    /// A token.
    Tokens(Tokens),
}

/// The tokens of a server that has some.
#[derive(Debug)]
struct Tokens {
    known: RwLock<Vec<Arc<Token>>>,
    /// The server's own token. It is compared like the others.
    own: (String, Arc<Token>),
    guesses: Mutex<Guesses>,
    file: Option<(PathBuf, Mutex<Watched>)>,
}

/// Which versions of the tokens file were seen; `None` stands for a file that is missing.
#[derive(Debug)]
struct Watched {
    read: Option<Stamp>,
    /// The version at the last look.
    seen: Option<Stamp>,
}

impl Default for Access {
    fn default() -> Self {
        Self::open(None)
    }
}

impl Access {
    fn open(users: Option<Users>) -> Self {
        let (limits, clock): (_, Clock) = (AccessLimits::default(), now_us);
        let anyone = Grant::new(Token::new(TokenEntry::unlimited(ANYONE, ""), limits, clock));
        Self { door: Door::Open { anyone, users }, limits, clock }
    }

    /// Creates the access to a server without tokens that listens on a loopback address: for the user who runs this
    /// process if the system tells whose a connection is, or else for every user of the machine.
    pub fn for_this_user(listen: IpAddr) -> Self {
        Self::open(Users::detect(listen))
    }

    /// Creates the access to a server with one token, which has every role.
    pub fn with_token(token: &str) -> Result<Self, String> {
        Self::with_entries(vec![TokenEntry::unlimited(DEFAULT, token)], None, AccessLimits::default(), now_us)
    }

    /// Creates the access to a server whose tokens are in a file. Returns a sentence for people if the file is invalid.
    pub fn with_file(path: &Path) -> Result<Self, String> {
        Self::with_file_at(path, AccessLimits::default(), now_us)
    }

    fn with_file_at(path: &Path, limits: AccessLimits, clock: Clock) -> Result<Self, String> {
        // Before the file is read, so that no change is missed.
        let read = Stamp::of(path);
        let entries = read_entries(path, &limits)?;
        if entries.is_empty() {
            return Err(format!(
                "{} has no tokens. `vramscope token new --name NAME --role ROLE` makes a line for it.",
                path.display()
            ));
        }
        let watched = Mutex::new(Watched { read, seen: read });
        Self::with_entries(entries, Some((path.to_owned(), watched)), limits, clock)
    }

    fn with_entries(
        entries: Vec<TokenEntry>,
        file: Option<(PathBuf, Mutex<Watched>)>,
        limits: AccessLimits,
        clock: Clock,
    ) -> Result<Self, String> {
        let own = secret::fresh_token()?;
        let entry = TokenEntry::of_role(SERVER, &own, Role::Ingest);
        let known = entries.into_iter().map(|entry| Token::new(entry, limits, clock)).collect();
        let tokens = Tokens {
            known: RwLock::new(known),
            own: (own, Token::new(entry, limits, clock)),
            guesses: Mutex::default(),
            file,
        };
        Ok(Self { door: Door::Tokens(tokens), limits, clock })
    }

    /// Whether a token is required.
    pub fn wants_token(&self) -> bool {
        matches!(self.door, Door::Tokens(_))
    }

    /// Returns the token with which the server publishes its own demo, if it requires one.
    pub fn own_token(&self) -> Option<&str> {
        match &self.door {
            Door::Tokens(tokens) => Some(&tokens.own.0),
            Door::Open { .. } => None,
        }
    }

    /// Returns how access is granted, as the end of a sentence.
    pub fn describe(&self) -> String {
        match &self.door {
            Door::Open { users: Some(_), .. } => "open to this user only".to_owned(),
            Door::Open { users: None, .. } => "open to every user of this machine".to_owned(),
            Door::Tokens(tokens) if tokens.file.is_none() => "with a token".to_owned(),
            Door::Tokens(tokens) => {
                let count = tokens.known.read().unwrap_or_else(PoisonError::into_inner).len();
                format!("with {}", counted(count as u64, "token"))
            }
        }
    }

    /// Returns the grant of a client that showed no token, on a server that requires none. May read a file of the system.
    pub fn anyone(&self, socket: Option<&PeerSocket>) -> Result<Grant, Denied> {
        match &self.door {
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
        let tokens = match &self.door {
            Door::Open { .. } => return self.anyone(None),
            Door::Tokens(_) if token.is_empty() => return Err(Denied::Missing),
            Door::Tokens(tokens) => tokens,
        };
        let secret = Secret::of(token);
        // Held while comparing: requests that come at once are counted one by one.
        let mut guesses = tokens.guesses();
        let found = guesses.check((peer, &secret), &self.limits, Instant::now(), || tokens.find(&secret));
        drop(guesses);
        let grant = Grant::new(found.map_err(|wrong| match wrong {
            Wrong::Token => Denied::Wrong,
            Wrong::Slowed(wait) => Denied::Slowed(whole_seconds(wait)),
        })?);
        grant.check_validity()?;
        Ok(grant)
    }

    /// Returns the grant of a caller for a role. `token` is the one in its first message, which counts if its request
    /// showed none.
    pub fn admit(&self, caller: &Caller, token: &str, role: Role) -> Result<Grant, Denied> {
        let grant = match &caller.grant {
            Err(denied) => return Err(denied.clone()),
            Ok(Some(grant)) => grant.clone(),
            Ok(None) => self.check(token, caller.peer)?,
        };
        grant.check(role)?;
        Ok(grant)
    }

    /// Reads the tokens file again whenever it changes. Never ends.
    pub async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(RELOAD_CHECK).await;
            let access = Arc::clone(&self);
            if let Err(error) = tokio::task::spawn_blocking(move || access.reload()).await {
                tracing::error!(%error, "looking at the tokens file failed");
            }
        }
    }

    /// Reads the tokens file again if it changed and then stayed the same between two calls: an editor may still be
    /// writing it. If it is invalid, the tokens stay as they are. Waits for the disk.
    fn reload(&self) {
        let Door::Tokens(Tokens { file: Some((path, watched)), .. }) = &self.door else { return };
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Stamp::of(path);
        let is_settled = std::mem::replace(&mut watched.seen, now) == now;
        if now == watched.read || !is_settled {
            return;
        }
        // Each version is read once, so that an invalid one is reported once.
        watched.read = now;
        match read_entries(path, &self.limits) {
            Ok(entries) => {
                let (count, revoked) = self.replace(entries);
                tracing::info!(tokens = count, revoked, "tokens file read again");
                if count == 0 {
                    tracing::warn!("the tokens file has no tokens: nobody has access");
                }
            }
            Err(sentence) => tracing::error!("the tokens stay as they were: {sentence}"),
        }
    }

    /// Replaces the tokens. One that has the same name and secret stays the same, with the new terms; one that is missing
    /// is revoked. Returns how many there are, and how many were revoked.
    fn replace(&self, entries: Vec<TokenEntry>) -> (usize, usize) {
        let Door::Tokens(tokens) = &self.door else { return (0, 0) };
        let mut known = tokens.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut old = std::mem::take(&mut *known);
        for entry in entries {
            let token = match old.iter().position(|token| token.is_of(&entry)) {
                Some(at) => {
                    let token = old.swap_remove(at);
                    token.terms.send_replace(Terms::of(&entry));
                    token
                }
                None => Token::new(entry, self.limits, self.clock),
            };
            known.push(token);
        }
        let count = known.len();
        drop(known);
        for token in &old {
            token.revoke();
        }
        tokens.guesses().forget_wrong();
        (count, old.len())
    }
}

impl Tokens {
    fn guesses(&self) -> MutexGuard<'_, Guesses> {
        self.guesses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the token with a secret. Compares all of them, so that the time tells nothing.
    fn find(&self, secret: &Secret) -> Option<Arc<Token>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let all = known.iter().chain([&self.own.1]);
        all.fold(None, |found, token| if token.secret.is_same(secret) { Some(Arc::clone(token)) } else { found })
    }
}

/// Reads a tokens file. Returns a sentence for people if it is invalid.
fn read_entries(path: &Path, limits: &AccessLimits) -> Result<Vec<TokenEntry>, String> {
    let text = read_private(path, limits.file_bytes)?;
    tokens_file::parse(&text, limits)
        .map_err(|error| format!("The tokens file {} is invalid: {error}.", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const JOBS: &str = "token-of-the-jobs";
    const PEOPLE: &str = "token-of-the-people";

    struct File {
        folder: tempfile::TempDir,
        access: Access,
    }

    impl File {
        fn new(text: &str, clock: Clock) -> Self {
            let folder = tempfile::tempdir().unwrap();
            write(&folder.path().join("tokens"), text, 0o600);
            let limits = AccessLimits { local_guesses: 100_000, ..AccessLimits::default() };
            let access = Access::with_file_at(&folder.path().join("tokens"), limits, clock).unwrap();
            Self { folder, access }
        }

        /// Changes the file, and looks at it as often as it takes to read it again.
        fn change(&self, text: &str, mode: u32) {
            write(&self.folder.path().join("tokens"), text, mode);
            self.access.reload();
            self.access.reload();
        }

        fn check(&self, token: &str) -> Result<String, Denied> {
            self.access.check(token, HERE).map(|grant| format!("{} {}", grant.name(), grant.roles()))
        }
    }

    fn write(path: &Path, text: &str, mode: u32) {
        // As editors do: a new file takes the place of the old one.
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn ok(text: &str) -> Result<String, Denied> {
        Ok(text.to_owned())
    }

    #[test]
    fn a_changed_file_adds_changes_and_revokes_tokens() {
        let file = File::new(&format!("jobs ingest {JOBS}\n"), now_us);
        assert_eq!((file.check(JOBS), file.check(PEOPLE)), (ok("jobs ingest"), Err(Denied::Wrong)));
        let jobs = file.access.check(JOBS, HERE).unwrap();
        let both = format!("jobs ingest,read {JOBS} bytes=1GiB\npeople read {PEOPLE}\n");
        write(&file.folder.path().join("tokens"), &both, 0o600);
        // The first look finds that it changed; it may not be whole yet.
        file.access.reload();
        assert_eq!(file.check(PEOPLE), Err(Denied::Wrong));
        file.access.reload();
        assert_eq!((file.check(JOBS), file.check(PEOPLE)), (ok("jobs ingest,read"), ok("people read")));
        assert_eq!(jobs.check(Role::Read), Ok(()));
        assert_eq!(jobs.quotas().bytes, Some(1 << 30));
        let people = file.access.check(PEOPLE, HERE).unwrap();
        assert_eq!(file.access.describe(), "with 2 tokens");

        file.change(&format!("people share {PEOPLE}"), 0o600);
        assert_eq!((file.check(JOBS), jobs.check(Role::Ingest)), (Err(Denied::Wrong), Err(Denied::Revoked)));
        assert_eq!(people.check(Role::Read), Err(Denied::Role(Role::Read)));
        // Another secret under the same name is another token.
        file.change(&format!("people share {JOBS}"), 0o600);
        assert_eq!(people.check(Role::Share), Err(Denied::Revoked));
        file.change("# nobody", 0o600);
        assert_eq!(file.check(JOBS), Err(Denied::Wrong));
    }

    #[cfg(unix)]
    #[test]
    fn an_invalid_or_missing_file_changes_nothing() {
        let good = format!("jobs ingest {JOBS}");
        let file = File::new(&good, now_us);
        for (text, mode) in [("jobs ingest", 0o600), ("", 0o644), (&*format!("{good}\nx"), 0o600)] {
            file.change(text, mode);
            assert_eq!(file.check(JOBS), ok("jobs ingest"), "{text:?}");
        }
        let path = file.folder.path().join("tokens");
        fs::remove_file(&path).unwrap();
        file.access.reload();
        file.access.reload();
        assert_eq!(file.check(JOBS), ok("jobs ingest"));
        // Permissions that are mended count as a change.
        file.change(&format!("jobs read {JOBS}"), 0o644);
        assert_eq!(file.check(JOBS), ok("jobs ingest"));
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        file.access.reload();
        file.access.reload();
        assert_eq!(file.check(JOBS), ok("jobs read"));
    }

    #[test]
    fn an_expired_token_ends_what_uses_it() {
        static NOW: AtomicI64 = AtomicI64::new(0);
        let file = File::new(&format!("jobs ingest {JOBS} expires=1970-01-01"), || NOW.load(Ordering::Relaxed));
        let grant = file.access.check(JOBS, HERE).unwrap();
        for (us, wanted) in [(86_399_999_999, Ok(())), (86_400_000_000, Err(Denied::Expired))] {
            NOW.store(us, Ordering::Relaxed);
            assert_eq!(grant.check(Role::Ingest), wanted);
            assert_eq!(file.access.check(JOBS, HERE).map(drop), wanted);
        }
    }

    #[tokio::test]
    async fn who_waits_for_the_end_of_a_grant_learns_it_at_once() {
        let file = File::new(&format!("jobs ingest {JOBS}"), now_us);
        let grant = file.access.check(JOBS, HERE).unwrap();
        let waiting = tokio::spawn(async move { grant.ended(Role::Ingest).await });
        tokio::task::yield_now().await;
        file.change("# nobody", 0o600);
        assert_eq!(waiting.await.unwrap(), Denied::Revoked);
    }

    #[test]
    fn a_file_without_tokens_and_one_that_others_can_read_start_no_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        for (text, mode, wanted) in [
            ("# none\n", 0o600, "has no tokens"),
            ("jobs ingest short", 0o600, "is invalid: line 1: "),
            #[cfg(unix)]
            ("jobs ingest token-of-the-jobs", 0o644, "chmod 600 "),
        ] {
            write(&path, text, mode);
            let error = Access::with_file(&path).unwrap_err();
            assert!(error.contains(wanted) && error.contains("tokens") && !error.contains(JOBS), "{error}");
        }
    }

    #[test]
    fn the_single_token_and_no_token_allow_everything() {
        let single = Access::with_token(JOBS).unwrap();
        let grant = single.check(JOBS, HERE).unwrap();
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
