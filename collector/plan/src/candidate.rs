//! One thing that could be done.

use serde::Serialize;

/// The kinds of measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Frees what is freed a step late.
    FreeEarlier,
    /// Computes again what a call kept for the backward pass.
    Checkpoint,
    /// Moves to the host what a call kept for the backward pass.
    OffloadActivations,
    /// Moves the optimizer's state to the host, except while the optimizer runs.
    OffloadOptimizer,
}

impl Kind {
    /// Returns it in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::FreeEarlier => "free earlier",
            Self::Checkpoint => "checkpoint",
            Self::OffloadActivations => "offload",
            Self::OffloadOptimizer => "offload",
        }
    }
}

/// One thing that could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// What it is.
    pub kind: Kind,
    /// The number of what it is done to, among those of its kind.
    pub(crate) of: usize,
    /// The first calls of each forward pass to which it is done; 1 where there are no calls.
    pub calls: u32,
}

impl Candidate {
    /// Returns the same for fewer calls.
    #[must_use]
    pub(crate) fn with_calls(self, calls: u32) -> Self {
        Self { calls, ..self }
    }
}
