//! Links: what leads to a shared trace.

use serde::{Deserialize, Serialize};

use super::ShareResult;
use super::password::Password;
use crate::access::Secret;
use crate::store::StoreError;

/// A link. Its token is not part of it: its file is named by the token's hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// The name of the trace's file; empty once the link is gone.
    pub content: String,
    /// The bytes of the trace.
    pub bytes: u64,
    /// The name, for people.
    pub name: String,
    /// The events of the trace.
    pub events: u64,
    /// When it was made, in microseconds since the epoch.
    pub created_us: i64,
    /// When it expires, in microseconds since the epoch; `None` for never.
    pub expires_us: Option<i64>,
    /// The hash of the token that changes and deletes it.
    pub delete: String,
    /// Its password, if it has one.
    pub password: Option<Password>,
    /// Whether it opens without a token of the server.
    pub is_public: bool,
    /// The name of the token that made it.
    pub owner: String,
    /// Since when it is not valid any more, and why.
    pub gone: Option<Gone>,
}

/// Since when a link is not valid any more, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gone {
    /// Why.
    pub why: Why,
    /// Since when, in microseconds since the epoch.
    pub at_us: i64,
}

/// Why a link is not valid any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// Who made it deleted it.
    Deleted,
    /// Its time is over.
    Expired,
}

impl Link {
    /// Reads a link's file.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Returns the content of a link's file.
    pub(super) fn to_bytes(&self) -> ShareResult<Vec<u8>> {
        Ok(serde_json::to_vec(self).map_err(|error| StoreError::Io(error.into()))?)
    }

    /// Returns why the link is not valid at a time; `None` if it is.
    pub(super) fn gone_at(&self, now_us: i64) -> Option<Gone> {
        let expired = self.expires_us.filter(|expires_us| now_us >= *expires_us);
        self.gone.or(expired.map(|at_us| Gone { why: Why::Expired, at_us }))
    }

    /// Whether a token is the one that changes and deletes the link.
    pub(super) fn is_deleted_by(&self, token: &str) -> bool {
        Secret::from_hash(&self.delete).is(token)
    }

    /// Returns what is remembered of the link once it is gone: nothing of its trace.
    pub(super) fn ended(&self, gone: Gone) -> Self {
        Self { created_us: self.created_us, gone: Some(gone), ..Self::default() }
    }

    /// Returns the hash of the trace's bytes in hexadecimal digits.
    pub fn hash(&self) -> &str {
        self.content.split('.').next().unwrap_or_default()
    }
}
