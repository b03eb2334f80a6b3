//! The settings string (`PYTORCH_CUDA_ALLOC_CONF`), read as PyTorch reads it: the same values, the same refusals in
//! the same words, and the same half-applied state after a refusal.
//!
//! Releases differ too much for one reader: [`checked`] is the one up to 2.7, [`stepped`] the pair of readers since.

mod checked;
mod cursor;
mod divisions;
mod error;
mod number;
mod stepped;
mod tokens;

pub use error::{ConfigError, ErrorKind};

use super::config::AllocatorConfig;
use super::profile::{Profile, Separators};

/// The words for a backend that is none, the same in all releases.
const UNKNOWN_BACKEND: &str = "Unknown allocator backend, options are native and cudaMallocAsync";

/// Our own words where PyTorch has none: it reads memory that is not its tokens', and crashes.
const READ_PAST_THE_END: &str = "roundup_power2_divisions has no closing bracket; this release of PyTorch crashes on it: write ] after the last value";

/// When a settings string is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// From the environment, when CUDA is initialised.
    Start,
    /// Later, through `torch._C._accelerator_setAllocatorSettings`.
    Run,
}

/// Reads `conf` into `config` as PyTorch does for a program that changes its settings while it runs.
///
/// Every call first resets `max_split_size`, the divisions and the threshold of garbage collection; since torch 2.11
/// also `max_non_split_rounding`. All else stays until it is named.
///
/// # Errors
///
/// In PyTorch's words. What came before the mistake is then in force, and so is what was reset.
pub fn parse(conf: &str, profile: &Profile, config: &mut AllocatorConfig) -> Result<(), ConfigError> {
    read(conf, profile, config, Moment::Run)
}

impl AllocatorConfig {
    /// The settings of a program that starts with `conf` in its environment.
    ///
    /// # Errors
    ///
    /// In PyTorch's words, with which `torch.cuda.init` fails. They differ from those of [`parse`] for some strings:
    /// the two readers take turns the other way round, and exceptions are translated differently there.
    pub fn from_conf(conf: &str, profile: &Profile) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        read(conf, profile, &mut config, Moment::Start)?;
        Ok(config)
    }
}

fn read(conf: &str, profile: &Profile, config: &mut AllocatorConfig, moment: Moment) -> Result<(), ConfigError> {
    match profile.separators {
        Separators::Checked => checked::read(conf, profile, config),
        Separators::SteppedOver => stepped::read(conf, profile, config, moment),
    }
}

/// What every call resets (`parseArgs` in all releases).
fn reset(conf: &str, config: &mut AllocatorConfig) {
    conf.clone_into(&mut config.conf);
    config.max_split_size = u64::MAX;
    config.roundup_power2_divisions = [0; 16];
    config.garbage_collection_threshold = 0.0;
}

/// MiB as bytes, for numbers that the options' names end in `_mb`; the largest that fits for what does not.
fn mebibytes(count: u64) -> u64 {
    count.min(u64::MAX >> 20) << 20
}
