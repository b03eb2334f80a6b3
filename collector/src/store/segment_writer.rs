//! Writes a segment: a file of the log until it is sealed.

use std::sync::Arc;

use super::archive::{Archive, Sealed};
use super::files::{Files, OpenFile, new_name};
use super::hash::Hasher;
use super::layout::open_path;
use super::quota::Quota;
use super::{Hash, Purpose, StoreError, StoreResult};

/// Appends to one segment. Nobody sees it before [`Self::publish`] or [`Self::seal`], and a writer that is dropped before both
/// leaves nothing behind.
#[derive(Debug)]
pub struct SegmentWriter {
    /// The file; `None` once the segment is sealed.
    file: Option<Box<dyn OpenFile>>,
    path: String,
    /// The path under which it is visible; `None` before that.
    published: Option<String>,
    purpose: Purpose,
    is_usable: bool,
    session: String,
    number: u32,
    length: u64,
    hasher: Hasher,
    files: Arc<dyn Files>,
    archive: Arc<Archive>,
    quota: Arc<Quota>,
}

impl SegmentWriter {
    /// Creates the file of a segment under the name of one that is not complete.
    pub(super) fn create(
        (files, archive, quota): (&Arc<dyn Files>, &Arc<Archive>, &Arc<Quota>),
        session: &str,
        number: u32,
        purpose: Purpose,
    ) -> StoreResult<Self> {
        let path = new_name(&open_path(session, number)?);
        Ok(Self {
            file: Some(files.create(&path)?),
            path,
            published: None,
            purpose,
            is_usable: true,
            session: session.to_owned(),
            number,
            length: 0,
            hasher: Hasher::default(),
            files: Arc::clone(files),
            archive: Arc::clone(archive),
            quota: Arc::clone(quota),
        })
    }

    fn file(&mut self) -> StoreResult<&mut Box<dyn OpenFile>> {
        self.file.as_mut().ok_or(StoreError::Missing)
    }

    /// Appends bytes: all of them, or none. A crash may lose them until [`Self::sync`].
    pub fn append(&mut self, bytes: &[u8]) -> StoreResult {
        match self.purpose {
            Purpose::Grow => self.quota.reserve(bytes.len() as u64)?,
            Purpose::Copy => self.quota.add(bytes.len() as u64),
        }
        let length = self.length;
        let file = self.file()?;
        if let Err(error) = file.append(bytes) {
            // A partial write is removed. If even that fails, it follows the last whole batch and is left out later.
            self.is_usable &= file.truncate(length).is_ok();
            self.quota.release(bytes.len() as u64);
            return Err(error.into());
        }
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Makes all appended bytes durable. After an error the segment must not be written any more: what the disk has of it is
    /// unknown.
    pub fn sync(&mut self) -> StoreResult {
        let synced = self.file()?.sync();
        // The system may have dropped what it could not write, and a later sync would not tell.
        self.is_usable &= synced.is_ok();
        Ok(synced?)
    }

    /// Makes all appended bytes durable and the segment visible, in one step.
    pub fn publish(&mut self) -> StoreResult {
        self.sync()?;
        let path = open_path(&self.session, self.number)?;
        self.files.rename(&self.path, &path)?;
        self.path.clone_from(&path);
        self.published = Some(path);
        Ok(())
    }

    /// Makes all appended bytes durable and the segment immutable, in one step. Returns its hash.
    pub fn seal(mut self) -> StoreResult<Hash> {
        self.sync()?;
        let hash = self.hasher.finish();
        let sealed = Sealed { number: self.number, hash, bytes: self.length };
        self.archive.take(&self.session, sealed, &self.path)?;
        self.file = None;
        Ok(hash)
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether more can be appended: nothing failed in a way that leaves the file's content unknown.
    pub fn is_usable(&self) -> bool {
        self.is_usable && self.file.is_some()
    }
}

impl Drop for SegmentWriter {
    fn drop(&mut self) {
        if self.file.take().is_some() && self.published.is_none() {
            // Nobody saw it. What can't be removed now counts as incomplete later.
            let _ = self.files.remove(&self.path);
            self.quota.release(self.length);
        }
    }
}
