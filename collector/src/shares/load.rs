//! What is found when a server starts.

use std::sync::{Arc, PoisonError};

use wire::is_session;

use super::layout::{LINKS, TRACES, UPLOADS, link_path, parse_content, parse_link};
use super::upload::Upload;
use super::{Link, ShareError, ShareResult, Shares};
use crate::store::StoreError;

impl Shares {
    /// Finds all links and traces, once. Until this is done, each link is looked for when it is opened, and nothing is deleted.
    pub fn load(&self) -> ShareResult {
        let _alone = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if self.state().is_loaded {
            return Ok(());
        }
        let traces = self.blobs.list(TRACES)?;
        let names = self.blobs.list(LINKS)?;
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
                // The next sweep tries again, and not with each link for as long.
                Err(ShareError::Away(error)) => return Err(ShareError::Away(error)),
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

    pub(super) fn read_link(&self, hash: &str) -> ShareResult<Arc<Link>> {
        let bytes = self.blobs.read(&link_path(hash), 0, self.limits.link_bytes)?;
        let link = Link::parse(&bytes).ok_or_else(|| StoreError::Damaged("a link is malformed".to_owned()))?;
        Ok(Arc::new(link))
    }

    /// Finds the uploads that an earlier server had not finished.
    pub(super) fn find_uploads(&self) {
        for entry in self.files.list(UPLOADS).unwrap_or_default() {
            if !entry.is_folder || !is_session(&entry.name) {
                continue;
            }
            match Upload::find(Arc::clone(&self.files), &entry.name) {
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
}
