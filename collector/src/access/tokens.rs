//! The tokens of a server: compared with what clients show, and read again when their file changes.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use trace::limits::AccessLimits;

use super::entry::SERVER;
use super::guesses::{Guesses, Wrong};
use super::private_file::{self, Stamp};
use super::token::{Clock, Terms, Token};
use super::usage::whole_seconds;
use super::{Denied, Grant, Role, Secret, TokenEntry, read_private, secret, tokens_file};

/// The tokens of a server that has some.
#[derive(Debug)]
pub(super) struct Tokens {
    known: RwLock<Vec<Arc<Token>>>,
    /// The server's own token, in clear and as it is compared with others.
    own: (String, Arc<Token>),
    guesses: Mutex<Guesses>,
    file: Option<(PathBuf, Mutex<Watched>)>,
    limits: AccessLimits,
    clock: Clock,
}

/// Which versions of the tokens file were seen; `None` stands for a file that is missing.
#[derive(Debug)]
struct Watched {
    read: Option<Stamp>,
    /// The version at the last look.
    seen: Option<Stamp>,
}

impl Tokens {
    /// Creates the tokens of a server without a file.
    pub(super) fn of(entries: Vec<TokenEntry>, limits: AccessLimits, clock: Clock) -> Result<Self, String> {
        let own = secret::fresh_token()?;
        let entry = TokenEntry::of_role(SERVER, &own, Role::Ingest);
        Ok(Self {
            known: RwLock::new(entries.into_iter().map(|entry| Token::new(entry, limits, clock)).collect()),
            own: (own, Token::new(entry, limits, clock)),
            guesses: Mutex::default(),
            file: None,
            limits,
            clock,
        })
    }

    /// Reads the tokens of a file. Returns a sentence for people if it is invalid, or has none.
    pub(super) fn of_file(path: &Path, limits: AccessLimits, clock: Clock) -> Result<Self, String> {
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
        Ok(Self { file: Some((path.to_owned(), watched)), ..Self::of(entries, limits, clock)? })
    }

    /// Returns the server's own token.
    pub(super) fn own(&self) -> &str {
        &self.own.0
    }

    /// Returns the number of tokens in the file; `None` if there is no file.
    pub(super) fn in_file(&self) -> Option<usize> {
        self.file.as_ref().map(|_| self.known.read().unwrap_or_else(PoisonError::into_inner).len())
    }

    /// Returns the names of the tokens with a quota of bytes, and that quota.
    pub(super) fn byte_quotas(&self) -> Vec<(String, u64)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter_map(|token| Some((token.name.clone(), token.terms.borrow().quotas.bytes?))).collect()
    }

    /// Returns the grant of a token that an address shows. Tokens are compared in constant time.
    pub(super) fn check(&self, token: &str, peer: IpAddr) -> Result<Grant, Denied> {
        if token.is_empty() {
            return Err(Denied::Missing);
        }
        let secret = Secret::of(token);
        // Held while comparing: requests that come at once are counted one by one.
        let mut guesses = self.guesses();
        let found = guesses.check((peer, &secret), &self.limits, Instant::now(), || self.find(&secret));
        drop(guesses);
        let grant = Grant::new(found.map_err(|wrong| match wrong {
            Wrong::Token => Denied::Wrong,
            Wrong::Slowed(wait) => Denied::Slowed(whole_seconds(wait)),
        })?);
        grant.check_validity()?;
        Ok(grant)
    }

    fn guesses(&self) -> MutexGuard<'_, Guesses> {
        self.guesses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the token with a secret. Compares all of them, so that the time tells nothing.
    fn find(&self, secret: &Secret) -> Option<Arc<Token>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let all = known.iter().chain([&self.own.1]);
        all.fold(None, |found, token| if token.secret.is_same(secret) { Some(Arc::clone(token)) } else { found })
    }

    /// Reads the tokens file again if it changed and then stayed the same between two calls: an editor may still be
    /// writing it. An invalid file adds and changes nothing, but a token that it no longer lists is revoked. Waits for the
    /// disk.
    pub(super) fn reload(&self) {
        let Some((path, watched)) = &self.file else { return };
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
                tracing::info!(tokens = count, revoked = revoked.join(","), "tokens file read again");
                if count == 0 {
                    tracing::warn!("the tokens file has no tokens: nobody has access");
                }
            }
            Err(sentence) => {
                // To keep somebody out must not fail because of another line, or of the file's mode.
                let revoked = private_file::read(path, self.limits.file_bytes).map(|text| self.revoke_unlisted(&text));
                let revoked = revoked.unwrap_or_default().join(",");
                tracing::error!(revoked, "only what the tokens file no longer lists was revoked: {sentence}");
            }
        }
    }

    /// Revokes the tokens that a text doesn't list, whatever else it says. Returns their names.
    fn revoke_unlisted(&self, text: &str) -> Vec<String> {
        let listed = tokens_file::listed(text);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let is_listed = |token: &Arc<Token>| {
            listed.iter().any(|(name, secret)| token.name == *name && token.secret.is_same(secret))
        };
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut *known).into_iter().partition(is_listed);
        *known = kept;
        drop(known);
        gone.into_iter()
            .map(|token| {
                token.revoke();
                token.name.clone()
            })
            .collect()
    }

    /// Replaces the tokens. One that has the same name and secret stays the same, with the new terms; one that is missing
    /// is revoked. Returns how many there are, and the names of those that were revoked.
    fn replace(&self, entries: Vec<TokenEntry>) -> (usize, Vec<String>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
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
        self.guesses().forget_wrong();
        (count, old.iter().map(|token| token.name.clone()).collect())
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
    use crate::clock::now_us;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const JOBS: &str = "token-of-the-jobs";
    const PEOPLE: &str = "token-of-the-people";

    struct File {
        folder: tempfile::TempDir,
        tokens: Tokens,
    }

    impl File {
        fn new(text: &str, clock: Clock) -> Self {
            let folder = tempfile::tempdir().unwrap();
            write(&folder.path().join("tokens"), text, 0o600);
            let limits = AccessLimits { local_guesses: 100_000, ..AccessLimits::default() };
            let tokens = Tokens::of_file(&folder.path().join("tokens"), limits, clock).unwrap();
            Self { folder, tokens }
        }

        /// Changes the file, and looks at it as often as it takes to read it again.
        fn change(&self, text: &str, mode: u32) {
            write(&self.folder.path().join("tokens"), text, mode);
            self.tokens.reload();
            self.tokens.reload();
        }

        fn check(&self, token: &str) -> Result<String, Denied> {
            self.tokens.check(token, HERE).map(|grant| format!("{} {}", grant.name(), grant.roles()))
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
        let jobs = file.tokens.check(JOBS, HERE).unwrap();
        let both = format!("jobs ingest,read {JOBS} bytes=1GiB\npeople read {PEOPLE}\n");
        write(&file.folder.path().join("tokens"), &both, 0o600);
        // The first look finds that it changed; it may not be whole yet.
        file.tokens.reload();
        assert_eq!(file.check(PEOPLE), Err(Denied::Wrong));
        file.tokens.reload();
        assert_eq!((file.check(JOBS), file.check(PEOPLE)), (ok("jobs ingest,read"), ok("people read")));
        assert_eq!(jobs.check(Role::Read), Ok(()));
        assert_eq!(jobs.quotas().bytes, Some(1 << 30));
        let people = file.tokens.check(PEOPLE, HERE).unwrap();
        assert_eq!(file.tokens.in_file(), Some(2));

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
    fn an_invalid_file_revokes_what_it_does_not_list_and_changes_nothing_else() {
        let good = format!("jobs ingest {JOBS}");
        for (text, mode, is_revoked) in [
            (format!("{good}\nx"), 0o600, false),
            (format!("jobs ingest {JOBS} bytes=1"), 0o600, false),
            (format!("jobs wrong-role {JOBS}"), 0o600, false),
            (format!("{good}\npeople read {PEOPLE}"), 0o644, false),
            (format!("people read {PEOPLE}"), 0o644, true),
            (format!("# {good}\nx"), 0o600, true),
            ("jobs ingest".to_owned(), 0o600, true),
            (String::new(), 0o644, true),
        ] {
            let file = File::new(&good, now_us);
            let grant = file.tokens.check(JOBS, HERE).unwrap();
            file.change(&text, mode);
            let (wanted, used) =
                if is_revoked { (Err(Denied::Wrong), Err(Denied::Revoked)) } else { (ok("jobs ingest"), Ok(())) };
            assert_eq!((file.check(JOBS), grant.check(Role::Ingest)), (wanted, used), "{text:?}");
            assert_eq!(file.check(PEOPLE), Err(Denied::Wrong), "{text:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_missing_file_changes_nothing() {
        let good = format!("jobs ingest {JOBS}");
        let file = File::new(&good, now_us);
        let path = file.folder.path().join("tokens");
        fs::remove_file(&path).unwrap();
        file.tokens.reload();
        file.tokens.reload();
        assert_eq!(file.check(JOBS), ok("jobs ingest"));
        // Permissions that are mended count as a change.
        file.change(&format!("jobs read {JOBS}"), 0o644);
        assert_eq!(file.check(JOBS), ok("jobs ingest"));
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        file.tokens.reload();
        file.tokens.reload();
        assert_eq!(file.check(JOBS), ok("jobs read"));
    }

    #[test]
    fn an_expired_token_ends_what_uses_it() {
        static NOW: AtomicI64 = AtomicI64::new(0);
        let file = File::new(&format!("jobs ingest {JOBS} expires=1970-01-01"), || NOW.load(Ordering::Relaxed));
        let grant = file.tokens.check(JOBS, HERE).unwrap();
        for (us, wanted) in [(86_399_999_999, Ok(())), (86_400_000_000, Err(Denied::Expired))] {
            NOW.store(us, Ordering::Relaxed);
            assert_eq!(grant.check(Role::Ingest), wanted);
            assert_eq!(file.tokens.check(JOBS, HERE).map(drop), wanted);
        }
    }

    #[tokio::test]
    async fn who_waits_for_the_end_of_a_grant_learns_it_at_once() {
        let file = File::new(&format!("jobs ingest {JOBS}"), now_us);
        let grant = file.tokens.check(JOBS, HERE).unwrap();
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
            let error = Tokens::of_file(&path, AccessLimits::default(), now_us).unwrap_err();
            assert!(error.contains(wanted) && error.contains("tokens") && !error.contains(JOBS), "{error}");
        }
    }
}
