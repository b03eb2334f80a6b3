//! What a search for settings is for, and what it found.

use serde::{Deserialize, Serialize};

use super::Outcome;

/// What a search is for. In all of them, a run that fails is worse than any that doesn't.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// The least reserved memory at the peak.
    #[default]
    Reserved,
    /// The fewest calls of the driver, each of which costs time.
    Calls,
    /// No request that fails or has to be repeated on the device, with the fewest options. Where a request failed in the
    /// recording, a few repetitions don't count, but how much of the device is left does.
    Fit,
}

impl Goal {
    /// All goals.
    pub const ALL: [Self; 3] = [Self::Reserved, Self::Calls, Self::Fit];
}

/// Settings that come to the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// What they come to.
    pub outcome: Outcome,
    /// The lines for `PYTORCH_CUDA_ALLOC_CONF`, the one with the fewest options first.
    pub confs: Vec<String>,
    /// The options that the first line sets.
    pub options: u32,
    /// Whether no other settings reserve less with as few calls of the driver, or need fewer calls with as little memory. A
    /// group whose runs fail is not.
    pub is_on_front: bool,
    /// Whether the recorded settings come to this.
    pub is_recorded: bool,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// What it was for.
    pub goal: Goal,
    /// The number of settings that were tried, without the recorded ones.
    pub tried: u32,
    /// What they came to, the best for the goal first.
    pub groups: Vec<Group>,
    /// What to do.
    pub advice: Advice,
}

/// What a search recommends, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// The line for `PYTORCH_CUDA_ALLOC_CONF`; `None` if no setting helps.
    pub conf: Option<String>,
    /// What it brings, or why nothing helps. One sentence or more.
    pub text: String,
    /// What it costs, and what it doesn't help; empty if nothing helps.
    pub cost: String,
}
