//! Traces that are shared by links.
//!
//! ```text
//! begin ─► part, part … ─► finish ─► a trace, named by the hash of its bytes ◄── a link, named by the hash of its token
//!          each one durable   written anew                                        one or more for each trace
//! ```
//! A link's token is random: nobody can guess it, and it tells nothing of the trace. The server keeps only its hash, so who
//! reads the store's folder can't open a link. The hash of a trace's bytes names its file, so the same trace is stored once,
//! but it opens nothing.
//!
//! What was uploaded is never passed on unread: all of it is read and written anew
//! ([`format::recording::Transcriber`]), while it arrives if possible ([`Shares::follow`]), and else at its end. A link is written last, so that it never leads to half a trace, whenever the server
//! is killed.

mod check;
mod claims;
mod error;
mod finish;
mod follow;
mod keys;
mod layout;
mod link;
mod load;
mod part;
mod password;
#[cfg(test)]
mod race_tests;
mod room;
#[cfg(test)]
mod room_tests;
mod sweep;
#[cfg(test)]
mod tests;
mod upload;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use error::ShareError;
pub use finish::{Checked, Ending, Finished};
pub use link::{Gone, Link, Why};
pub use part::PartWriter;
use tokio::sync::Semaphore;
use trace::limits::ShareLimits;
use trace::text::escaped;
use wire::{LINK_CHARS, SESSION_CHARS, is_link_token, link_token, session_id};

use self::check::Arriving;
use self::claims::Claims;
use self::keys::Keys;
use self::layout::{content_path, link_path};
use self::part::Turn;
use self::password::Password;
pub use self::upload::Progress;
use self::upload::{Phase, Upload, UploadState};
use crate::access::{Rates, Secret};
use crate::brief_lock::{BriefGuard, BriefLock};
use crate::clock::now_us;
use crate::store::files::Files;
use crate::store::{Blobs, Hash, StoreError};

/// The result of an operation on shares.
pub type ShareResult<T = ()> = Result<T, ShareError>;

/// What the server's owner allows.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Bytes of all shared traces and uploads together.
    pub bytes: u64,
    /// The longest time until a link expires, in seconds; `None` if it may be valid for ever.
    pub most_seconds: Option<u64>,
    /// Whether a link may be opened without a token of the server.
    pub allows_public: bool,
}

impl Default for Terms {
    /// Returns 5 GiB, any expiry, and no public links.
    fn default() -> Self {
        Self { bytes: 5 << 30, most_seconds: None, allows_public: false }
    }
}

/// What somebody wants to share, before it is uploaded.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// The bytes of the upload.
    pub bytes: u64,
    /// The hash of the upload, if the sender knows it.
    pub hash: Option<Hash>,
    /// The name of the link, for people.
    pub name: String,
    /// The seconds until it expires; `None` for never.
    pub expires_seconds: Option<u64>,
    /// The password that opens it, if there is one.
    pub password: Option<String>,
    /// Whether it opens without a token of the server.
    pub is_public: bool,
}

/// Who shares: the name of the token, and the most bytes that it may store.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The name of the token.
    pub name: &'a str,
    /// The quota of bytes, if there is one.
    pub bytes: Option<u64>,
}

/// An upload that has begun. This is the only time that the server knows both tokens; it keeps their hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The upload's id.
    pub id: String,
    /// The token of the link, which exists once the upload is finished.
    pub token: String,
    /// The token that changes and deletes the link.
    pub delete_token: String,
}

/// The traces that are shared. All functions may wait for a disk or a network: never call them on an async task.
#[derive(Debug)]
pub struct Shares {
    files: Arc<dyn Files>,
    blobs: Arc<dyn Blobs>,
    limits: ShareLimits,
    terms: Terms,
    state: BriefLock<State>,
    /// Which links and traces are being changed.
    claims: Claims,
    /// Held while all links are looked for.
    loading: Mutex<()>,
    keys: Keys,
    /// How often an address may begin an upload.
    pub begins: Rates,
    /// How often an address may try a password.
    pub passwords: Rates,
    /// Uploads that are checked, and passwords that are compared, at once.
    pub checks: Arc<Semaphore>,
    /// Traces that are sent to where they are kept, at once.
    pub sends: Arc<Semaphore>,
    /// Uploads that are checked while they arrive.
    follows: Arc<Semaphore>,
}

/// The links, traces and uploads.
#[derive(Debug, Default)]
struct State {
    /// Links by the hash of their token.
    links: HashMap<String, Arc<Link>>,
    /// Whether all links were found. Before that, a link is looked for in the store.
    is_loaded: bool,
    /// Links whose files can't be read, or may be there. While there are some, no trace is deleted: one of them may lead to it.
    unreadable: BTreeSet<String>,
    /// The bytes of each trace.
    traces: BTreeMap<String, u64>,
    /// Traces that may be there or not: storing or deleting them has failed.
    doubtful: BTreeSet<String>,
    /// Traces without a link, and since when, by the clock of retention.
    orphans: HashMap<String, i64>,
    uploads: HashMap<String, Arc<Upload>>,
    /// Uploads that were finished, and the link of each, so that the end can be requested again.
    finished: Vec<(String, String)>,
}

impl State {
    /// Whether a trace is there for certain.
    fn is_stored(&self, content: &str) -> bool {
        self.traces.contains_key(content) && !self.doubtful.contains(content)
    }

    /// Notes that a trace of so many bytes was stored, or for `None` that this has failed.
    fn note_stored(&mut self, content: &str, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            self.traces.insert(content.to_owned(), bytes);
            self.doubtful.remove(content);
        } else {
            self.doubtful.insert(content.to_owned());
        }
    }
}

impl Shares {
    /// Opens the shares in a store's local folder and blobs.
    pub fn open((files, blobs): (Arc<dyn Files>, Arc<dyn Blobs>), limits: ShareLimits, terms: Terms) -> Self {
        let shares = Self {
            files,
            blobs,
            limits,
            terms,
            state: BriefLock::default(),
            claims: Claims::default(),
            loading: Mutex::default(),
            keys: Keys::new(&limits),
            begins: Rates::new(limits.begins.0, limits.begins.1, limits.addresses),
            passwords: Rates::new(limits.passwords.0, limits.passwords.1, limits.addresses),
            checks: Arc::new(Semaphore::new(limits.checks)),
            sends: Arc::new(Semaphore::new(limits.sends)),
            follows: Arc::new(Semaphore::new(limits.checks)),
        };
        shares.find_uploads();
        shares
    }

    /// Returns the limits.
    pub fn limits(&self) -> &ShareLimits {
        &self.limits
    }

    /// Returns what the server's owner allows.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Returns the most bytes of one upload.
    pub fn most_bytes(&self) -> u64 {
        self.limits.upload_bytes.min(self.most_unfinished())
    }

    fn state(&self) -> BriefGuard<'_, State> {
        self.state.lock()
    }

    /// Begins an upload.
    pub fn begin(&self, offer: &Offer, owner: Owner<'_>) -> ShareResult<Begun> {
        let record = self.check(offer, owner)?;
        let id = session_id(random::<SESSION_CHARS>()?);
        let (token, delete_token) = (link_token(random::<LINK_CHARS>()?), link_token(random::<LINK_CHARS>()?));
        let record = upload::Record {
            link: Secret::of(&token).as_str().to_owned(),
            delete: Secret::of(&delete_token).as_str().to_owned(),
            ..record
        };
        let upload = Arc::new(Upload::create(Arc::clone(&self.files), &id, record)?);
        let begun = self.with_room(offer.bytes, || {
            let mut state = self.state();
            // Two that begin at the same time both passed the first check.
            self.check_offer(&state, offer.bytes, owner)?;
            upload.hold(offer.bytes.min(self.limits.parts_ahead.saturating_mul(self.limits.part_bytes)));
            state.uploads.insert(id.clone(), Arc::clone(&upload));
            Ok(())
        });
        match begun {
            Ok(()) => Ok(Begun { id, token, delete_token }),
            Err(refused) => {
                upload.clear()?;
                Err(refused)
            }
        }
    }

    /// Checks an offer against the limits. Returns what will be stored of it, without tokens.
    fn check(&self, offer: &Offer, owner: Owner<'_>) -> ShareResult<upload::Record> {
        let Terms { most_seconds, allows_public, .. } = self.terms;
        if offer.bytes == 0 {
            return Err(ShareError::Empty);
        }
        if offer.bytes > self.most_bytes() {
            return Err(ShareError::TooLarge(self.most_bytes()));
        }
        if offer.is_public && !allows_public {
            return Err(ShareError::NotPublic);
        }
        self.check_expiry(offer.expires_seconds, most_seconds)?;
        self.with_room(offer.bytes, || self.check_offer(&self.state(), offer.bytes, owner))?;
        let password = match &offer.password {
            Some(text) if text.len() > self.limits.password_bytes => {
                return Err(ShareError::PasswordTooLong(self.limits.password_bytes));
            }
            Some(text) if text.trim().is_empty() => return Err(ShareError::PasswordEmpty),
            Some(text) => Some(Password::of(text)?),
            None => None,
        };
        Ok(upload::Record {
            bytes: offer.bytes,
            hash: offer.hash.map(|hash| hash.to_string()),
            name: cut(&offer.name, self.limits.name_chars),
            expires_seconds: offer.expires_seconds,
            password,
            is_public: offer.is_public,
            owner: owner.name.to_owned(),
            ..upload::Record::default()
        })
    }

    fn check_expiry(&self, seconds: Option<u64>, most: Option<u64>) -> ShareResult {
        match (seconds, most) {
            (Some(0), _) => Err(ShareError::ExpiresAtOnce),
            (wanted, Some(most)) if wanted.is_none_or(|seconds| seconds > most) => Err(ShareError::ExpiresLate(most)),
            _ => Ok(()),
        }
    }

    /// Returns an upload of an owner.
    fn upload(&self, id: &str, owner: &str) -> ShareResult<Arc<Upload>> {
        let found = self.state().uploads.get(id).cloned();
        found.filter(|upload| upload.record.owner == owner).ok_or(ShareError::NoUpload)
    }

    /// Returns how far an upload has come.
    pub fn progress(&self, id: &str, owner: &str) -> ShareResult<Progress> {
        Ok(self.upload(id, owner)?.progress())
    }

    /// Begins the part of an upload at an offset.
    pub fn part(&self, id: &str, owner: Owner<'_>, from: u64) -> ShareResult<PartWriter> {
        let upload = self.upload(id, owner.name)?;
        let (turn, received) = Turn::take(upload, Duration::from_millis(self.limits.turn_millis))?;
        if from != received {
            return Err(ShareError::Offset(received));
        }
        self.hold_part(turn.upload(), received, owner)?;
        part::begin_part(turn, from, self.limits.part_bytes)
    }

    /// Gives an upload up. One that is being finished becomes no link then, unless its link is being made already.
    pub fn cancel(&self, id: &str, owner: &str) -> ShareResult {
        let upload = self.upload(id, owner)?;
        if self.give_up(&upload, Duration::from_millis(self.limits.turn_millis), |_| true)? {
            return Ok(());
        }
        Err(if upload.is_over() { ShareError::NoUpload } else { ShareError::Taken })
    }

    /// Gives an upload up if it is due, or if `most` allows to wait for it, when its link is not made after all. Returns whether
    /// it was. Who writes to it now removes its files.
    fn give_up(
        &self,
        upload: &Arc<Upload>,
        most: Duration,
        is_due: impl Fn(&UploadState) -> bool,
    ) -> ShareResult<bool> {
        let is_busy = {
            let mut state = upload.wait_while(most, |state| state.phase == Phase::Linking);
            if state.phase != Phase::Open || !is_due(&state) {
                return Ok(false);
            }
            state.phase = Phase::Over;
            state.is_busy
        };
        upload.wake();
        self.state().uploads.remove(&upload.id);
        if !is_busy {
            upload.clear()?;
        }
        Ok(true)
    }

    /// Returns the link of a token, if it is valid now. Its password is not checked.
    pub fn find(&self, token: &str) -> ShareResult<Arc<Link>> {
        let link = self.any(token)?;
        match link.gone_at(now_us()) {
            Some(gone) => Err(ShareError::Gone(gone)),
            None => Ok(link),
        }
    }

    /// Returns the link of a token, also if it is not valid any more.
    fn any(&self, token: &str) -> ShareResult<Arc<Link>> {
        if !is_link_token(token) {
            return Err(ShareError::Unknown);
        }
        let secret = Secret::of(token);
        let state = self.state();
        let found = state.links.get(secret.as_str()).cloned();
        let is_known = state.is_loaded && !state.unreadable.contains(secret.as_str());
        drop(state);
        match found {
            Some(link) => Ok(link),
            None if is_known => Err(ShareError::Unknown),
            None => match self.read_link(secret.as_str()) {
                Err(ShareError::Store(StoreError::Missing)) => Err(ShareError::Unknown),
                read => read,
            },
        }
    }

    /// Returns the link of a token for somebody who shows a key, which only a link with a password needs.
    pub fn open_with_key(&self, token: &str, key: Option<&str>) -> ShareResult<Arc<Link>> {
        let link = self.find(token)?;
        let is_open = link.password.is_none()
            || key.is_some_and(|key| self.keys.open(key, Secret::of(token).as_str(), Instant::now()));
        if is_open { Ok(link) } else { Err(ShareError::PasswordNeeded) }
    }

    /// Returns a key for a link whose password is right. Takes some 20 ms and 20 MB.
    pub fn unlock(&self, token: &str, password: &str) -> ShareResult<String> {
        let link = self.find(token)?;
        let is_right = password.len() <= self.limits.password_bytes
            && link.password.as_ref().is_none_or(|expected| expected.is(password));
        if !is_right {
            return Err(ShareError::PasswordWrong);
        }
        let key = link_token(random::<LINK_CHARS>()?);
        self.keys.add(&key, Secret::of(token).as_str(), Instant::now());
        Ok(key)
    }

    /// Reads up to `most` bytes of a link's trace from an offset; fewer only at its end.
    pub fn read(&self, link: &Link, from: u64, most: usize) -> ShareResult<Vec<u8>> {
        let left = usize::try_from(link.bytes.saturating_sub(from)).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(Vec::new());
        }
        Ok(self.blobs.read(&content_path(&link.content), from, most.min(left))?)
    }

    /// Changes when a link expires, for who has its delete token. Returns the link as it is then.
    pub fn set_expiry(&self, token: &str, delete: &str, expires_seconds: Option<u64>) -> ShareResult<Arc<Link>> {
        self.check_expiry(expires_seconds, self.terms.most_seconds)?;
        let secret = Secret::of(token);
        let _alone = self.claims.change(secret.as_str());
        let link = self.find(token)?;
        if !link.is_deleted_by(delete) {
            return Err(ShareError::DeleteToken);
        }
        let expires_us = expires_seconds.map(|seconds| after(now_us(), seconds));
        self.replace(secret.as_str(), Link { expires_us, ..(*link).clone() })
    }

    /// Deletes a link at once, and its trace unless another link leads to it. `delete` is its delete token; `None` for an
    /// administrator, who needs none.
    pub fn delete(&self, token: &str, delete: Option<&str>) -> ShareResult {
        let secret = Secret::of(token);
        let link = {
            let _alone = self.claims.change(secret.as_str());
            let link = self.find(token)?;
            if delete.is_some_and(|delete| !link.is_deleted_by(delete)) {
                return Err(ShareError::DeleteToken);
            }
            let gone = Gone { why: Why::Deleted, at_us: now_us() };
            self.replace(secret.as_str(), link.ended(gone))?;
            link
        };
        self.remove_unlinked(&link.content)
    }

    /// Stores a link in place of an earlier one.
    fn replace(&self, hash: &str, link: Link) -> ShareResult<Arc<Link>> {
        self.blobs.put(&link_path(hash), &link.to_bytes()?)?;
        let link = Arc::new(link);
        self.state().links.insert(hash.to_owned(), Arc::clone(&link));
        Ok(link)
    }
}

/// Returns the time so many seconds after another one, both in microseconds since the epoch.
fn after(time_us: i64, seconds: u64) -> i64 {
    time_us.saturating_add(i64::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX))
}

/// Returns the first characters of a text in one line, with its hidden characters shown.
fn cut(text: &str, chars: usize) -> String {
    escaped(text).chars().take(chars).collect()
}

fn random<const N: usize>() -> ShareResult<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| ShareError::Random(error.to_string()))?;
    Ok(bytes)
}
