//! A baseline: some runs in brief, which later ones are compared with.
//!
//! It is JSON, in a file that a repository can keep or on a server: `{"vramscope_baseline": 1, "runs": […]}`, with a [`RunProfile`]
//! for each run. How much they differ from one another is noise.

use compare::middle;
use query::run_profile::RunProfile;
use serde::{Deserialize, Serialize};
use trace::limits::BASELINE_BYTES;
use trace::units::Bytes;

/// How a baseline begins, which nothing else that is read does.
pub(crate) const START: &[u8] = br#"{"vramscope_baseline":"#;
/// The version that is written. Others are refused.
const VERSION: u32 = 1;

/// What [`is_baseline_name`] accepts, for people.
pub(crate) const BASELINE_NAME: &str =
    "The name of a baseline has 1 to 64 letters, digits, dots, - and _, and does not begin with a dot.";

/// Whether a text can name a baseline on a server.
pub(crate) fn is_baseline_name(text: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=64).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(is_fine)
}

/// A baseline.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Baseline {
    vramscope_baseline: u32,
    /// The runs, the oldest first.
    pub(crate) runs: Vec<RunProfile>,
}

impl Baseline {
    /// Returns one of these runs.
    pub(crate) const fn of(runs: Vec<RunProfile>) -> Self {
        Self { vramscope_baseline: VERSION, runs }
    }

    /// Reads a baseline. The error is a sentence for people.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > BASELINE_BYTES {
            return Err(format!("A baseline has at most {}. Keep fewer runs.", Bytes(BASELINE_BYTES as u64)));
        }
        if !bytes.starts_with(START) {
            return Err("This is no baseline. Make one: vramscope baseline set.".to_owned());
        }
        let found: Self = serde_json::from_slice(bytes)
            .map_err(|error| format!("This baseline can't be read: {error}. Make it again: vramscope baseline set."))?;
        match found.vramscope_baseline {
            VERSION if !found.runs.is_empty() => Ok(found),
            VERSION => Err("This baseline has no runs. Add one: vramscope baseline set.".to_owned()),
            _ => {
                Err("This baseline is of another version of Vramscope. Make it again: vramscope baseline set."
                    .to_owned())
            }
        }
    }

    /// Returns the baseline as JSON.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| error.to_string())
    }

    /// Returns the run in the middle, and the others.
    pub(crate) fn divided(self) -> Result<(RunProfile, Vec<RunProfile>), String> {
        middle(self.runs).ok_or_else(|| "This baseline has no runs.".to_owned())
    }
}
