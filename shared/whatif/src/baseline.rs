//! The release and the settings that a trace was recorded under.

use super::requests::Requests;
use super::terms::Terms;
use allocator::{AllocatorConfig, DriverError, Profile};
use query::whatif::SelfCheck;

/// The release and settings that a trace was recorded under, as far as it shows them, and how well they reproduce it.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The release.
    pub profile: &'static Profile,
    /// The settings.
    pub config: AllocatorConfig,
    /// How far the run comes out as recorded.
    pub check: SelfCheck,
}

/// Why a trace can't be repeated under its own settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaselineError {
    /// No profile was given, or none takes the settings.
    #[error("the recorded settings {conf:?}: {message}")]
    Settings {
        /// The settings.
        conf: String,
        /// PyTorch's error.
        message: String,
    },
    /// The state at the start is one that no allocator has.
    #[error("the trace can't be repeated: {0}.")]
    State(DriverError),
}

impl Requests {
    /// Returns the release under which most of the trace comes out as recorded, of those that `profiles` names; of
    /// several that fit equally well, the first. [`Profile::candidates`] names those of a file that doesn't name its
    /// release. `conf` are the recorded settings.
    ///
    /// # Errors
    /// No profile takes the settings, or the trace begins in a state that no allocator has.
    pub fn baseline(&self, profiles: &[&'static Profile], conf: &str) -> Result<Baseline, BaselineError> {
        let mut best: Option<Baseline> = None;
        let mut refused = String::new();
        for profile in profiles.iter().copied() {
            let config = match AllocatorConfig::from_conf(conf, profile) {
                Ok(config) => config,
                Err(error) => {
                    refused = error.to_string();
                    continue;
                }
            };
            let check = self.check(&Terms::ample(profile, config.clone())).map_err(BaselineError::State)?;
            let is_exact = check.is_exact();
            if best.as_ref().is_none_or(|known| check.equal > known.check.equal) {
                best = Some(Baseline { profile, config, check });
            }
            if is_exact {
                break;
            }
        }
        best.ok_or_else(|| BaselineError::Settings { conf: conf.to_owned(), message: refused })
    }
}
