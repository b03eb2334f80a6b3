//! The optional parts of a file, which show what PyTorch release wrote it.

use serde::{Deserialize, Serialize};

/// The optional parts that a snapshot file has. Releases added them one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Whether it has trace entries. Without any, the other fields about entries mean nothing.
    pub entries: bool,
    /// Whether entries name a compiled region, even none (torch 2.8 and later).
    pub compile_context: bool,
    /// Whether entries have the program's metadata, even none (torch 2.10 and later).
    pub user_metadata: bool,
    /// Whether entries name their pool (torch 2.12 and later).
    pub pool_id: bool,
    /// Whether there is a list of annotations, even an empty one (torch 2.5 and later).
    pub annotations: bool,
    /// Whether there is a list of pinned host memory, even an empty one (torch 2.14 and later).
    pub host: bool,
}

impl Marks {
    /// Adds what is known of some entries.
    pub fn add(&mut self, other: Self) {
        self.entries |= other.entries;
        self.compile_context |= other.compile_context;
        self.user_metadata |= other.user_metadata;
        self.pool_id |= other.pool_id;
    }
}
