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
//! ([`shared::recording::Transcriber`]), while it arrives if possible ([`Shares::follow`]), and else at its end. A link is written last, so that it never leads to half a trace, whenever the server
//! is killed.

mod check;
mod error;
mod finish;
mod keys;
mod layout;
mod link;
mod password;
mod sweep;
#[cfg(test)]
mod tests;
mod upload;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

pub use error::ShareError;
pub use finish::Finished;
pub use link::{Gone, Link, Why};
use shared::limits::ShareLimits;
use shared::text::shown;
use shared::wire::{LINK_CHARS, SESSION_CHARS, is_link_token, is_session, link_token, session_id};
use tokio::sync::Semaphore;

use self::keys::Keys;
use self::layout::{LINKS, UPLOADS, content_path, link_path, parse_content, parse_link};
use self::password::Password;
use self::upload::Upload;
pub use self::upload::{PartWriter, Progress};
use crate::access::{Rates, Secret};
use crate::clock::now_us;
use crate::store::files::Files;
use crate::store::{Hash, Shelf, StoreError};

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
    shelf: Arc<dyn Shelf>,
    limits: ShareLimits,
    terms: Terms,
    state: Mutex<State>,
    /// Held for writing while a trace is deleted, so that no link to it is made meanwhile.
    traces: RwLock<()>,
    keys: Keys,
    /// How often an address may begin an upload.
    pub begins: Rates,
    /// How often an address may try a password.
    pub passwords: Rates,
    /// Uploads that are checked, and passwords that are compared, at once.
    pub checks: Arc<Semaphore>,
    /// Uploads that are checked while they arrive.
    follows: Arc<Semaphore>,
}

/// What is known of links, traces and uploads.
#[derive(Debug, Default)]
struct State {
    /// Links by the hash of their token.
    links: HashMap<String, Arc<Link>>,
    /// Whether all links were found. Before that, a link is looked for in the store.
    is_loaded: bool,
    /// Links whose files can't be read. While there are some, no trace is deleted: one of them may lead to it.
    unreadable: BTreeSet<String>,
    /// The bytes of each trace.
    traces: BTreeMap<String, u64>,
    /// Traces without a link, and since when, by the clock of retention.
    orphans: HashMap<String, i64>,
    uploads: HashMap<String, Arc<Upload>>,
    /// Uploads that were finished, and the link of each, so that the end can be requested again.
    finished: Vec<(String, String)>,
}

impl State {
    /// Returns the bytes that traces and uploads take together.
    fn used(&self) -> u64 {
        let uploads = self.uploads.values().map(|upload| upload.record.bytes);
        self.traces.values().copied().chain(uploads).fold(0, u64::saturating_add)
    }

    /// Returns the bytes that an owner's links and uploads take, and the number of uploads.
    fn used_by(&self, owner: &str) -> (u64, usize) {
        let links = self.links.values().filter(|link| link.owner == owner).map(|link| link.bytes);
        let uploads = || self.uploads.values().filter(|upload| upload.record.owner == owner);
        let bytes = links.chain(uploads().map(|upload| upload.record.bytes)).fold(0, u64::saturating_add);
        (bytes, uploads().count())
    }
}

impl Shares {
    /// Opens the shares in a store's local folder and shelf.
    pub fn open((files, shelf): (Arc<dyn Files>, Arc<dyn Shelf>), limits: ShareLimits, terms: Terms) -> Self {
        let shares = Self {
            files,
            shelf,
            limits,
            terms,
            state: Mutex::default(),
            traces: RwLock::default(),
            keys: Keys::new(&limits),
            begins: Rates::new(limits.begins.0, limits.begins.1, limits.addresses),
            passwords: Rates::new(limits.passwords.0, limits.passwords.1, limits.addresses),
            checks: Arc::new(Semaphore::new(limits.checks)),
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
        self.limits.upload_bytes.min(self.terms.bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete at every moment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds all links and traces. Until this is done, each link is looked for when it is opened.
    pub fn load(&self) -> ShareResult {
        let traces = self.shelf.list(layout::TRACES)?;
        let names = self.shelf.list(LINKS)?;
        for (name, bytes) in traces {
            if parse_content(&name).is_some() {
                self.state().traces.insert(name, bytes);
            }
        }
        for (name, _) in names {
            let Some(hash) = parse_link(&name) else { continue };
            if self.state().links.contains_key(hash) {
                continue;
            }
            match self.read_link(hash) {
                Ok(link) => {
                    self.state().links.entry(hash.to_owned()).or_insert(link);
                }
                Err(ShareError::Store(StoreError::Missing)) => {}
                // It must cost neither the others, nor its trace.
                Err(error) => {
                    tracing::error!("the link {} can't be read: {error}", hash.get(..12).unwrap_or_default());
                    self.state().unreadable.insert(hash.to_owned());
                }
            }
        }
        self.state().is_loaded = true;
        Ok(())
    }

    fn read_link(&self, hash: &str) -> ShareResult<Arc<Link>> {
        let bytes = self.shelf.read(&link_path(hash), 0, self.limits.link_bytes)?;
        let link = Link::parse(&bytes).ok_or_else(|| StoreError::Damaged("a link is malformed".to_owned()))?;
        Ok(Arc::new(link))
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
        let upload = Arc::new(Upload::create(&*self.files, &id, record)?);
        let mut state = self.state();
        // Two that begin at the same time both passed the first check.
        let refused = self.check_room(&state, offer.bytes, owner).err();
        if refused.is_none() {
            state.uploads.insert(id.clone(), upload);
        }
        drop(state);
        match refused {
            Some(refused) => {
                Upload::remove(&*self.files, &id)?;
                Err(refused)
            }
            None => Ok(Begun { id, token, delete_token }),
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
        self.check_room(&self.state(), offer.bytes, owner)?;
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

    fn check_room(&self, state: &State, bytes: u64, owner: Owner<'_>) -> ShareResult {
        let (used, uploads) = state.used_by(owner.name);
        if uploads >= self.limits.uploads_of_token || state.uploads.len() >= self.limits.uploads {
            return Err(ShareError::Busy);
        }
        if let Some(quota) = owner.bytes.filter(|quota| used.saturating_add(bytes) > *quota) {
            return Err(ShareError::Quota(quota));
        }
        if state.used().saturating_add(bytes) > self.terms.bytes || state.links.len() >= self.limits.links {
            return Err(ShareError::Full);
        }
        Ok(())
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
    pub fn part(&self, id: &str, owner: &str, from: u64) -> ShareResult<PartWriter> {
        let upload = self.upload(id, owner)?;
        upload::begin_part(upload, Arc::clone(&self.files), from, self.limits.part_bytes)
    }

    /// Gives an upload up.
    pub fn cancel(&self, id: &str, owner: &str) -> ShareResult {
        self.upload(id, owner)?;
        self.remove_upload(id)
    }

    fn remove_upload(&self, id: &str) -> ShareResult {
        let removed = self.state().uploads.remove(id);
        if let Some(upload) = removed {
            upload.close();
        }
        Ok(Upload::remove(&*self.files, id)?)
    }

    /// Finds the uploads that an earlier server had not finished.
    fn find_uploads(&self) {
        for entry in self.files.list(UPLOADS).unwrap_or_default() {
            if !entry.is_folder || !is_session(&entry.name) {
                continue;
            }
            match Upload::find(&*self.files, &entry.name) {
                Ok(upload) => {
                    self.state().uploads.insert(entry.name, Arc::new(upload));
                }
                // Its description is written first and removed first, so these parts belong to no upload any more.
                Err(StoreError::Missing) => {
                    let _ = Upload::remove(&*self.files, &entry.name);
                }
                // The disk may answer again at the next start.
                Err(error) => tracing::error!(upload = entry.name, "an upload can't be read: {error}"),
            }
        }
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
        Ok(self.shelf.read(&content_path(&link.content), from, most.min(left))?)
    }

    /// Changes when a link expires, for who has its delete token. Returns the link as it is then.
    pub fn set_expiry(&self, token: &str, delete: &str, expires_seconds: Option<u64>) -> ShareResult<Arc<Link>> {
        self.check_expiry(expires_seconds, self.terms.most_seconds)?;
        let link = self.find(token)?;
        if !link.is_deleted_by(delete) {
            return Err(ShareError::DeleteToken);
        }
        let expires_us = expires_seconds.map(|seconds| after(now_us(), seconds));
        self.replace(Secret::of(token).as_str(), Link { expires_us, ..(*link).clone() })
    }

    /// Deletes a link at once, and its trace unless another link leads to it. `delete` is its delete token; `None` for an
    /// administrator, who needs none.
    pub fn delete(&self, token: &str, delete: Option<&str>) -> ShareResult {
        let link = self.find(token)?;
        if delete.is_some_and(|delete| !link.is_deleted_by(delete)) {
            return Err(ShareError::DeleteToken);
        }
        let gone = Gone { why: Why::Deleted, at_us: now_us() };
        self.replace(Secret::of(token).as_str(), link.ended(gone))?;
        self.remove_unlinked(&link.content)
    }

    /// Stores a link in place of an earlier one.
    fn replace(&self, hash: &str, link: Link) -> ShareResult<Arc<Link>> {
        self.shelf.put(&link_path(hash), &link.to_bytes()?)?;
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
    shown(text).chars().take(chars).collect()
}

fn random<const N: usize>() -> ShareResult<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| ShareError::Random(error.to_string()))?;
    Ok(bytes)
}
