//! Parses the settings string (`PYTORCH_CUDA_ALLOC_CONF`) as PyTorch does: with the same values, the same errors in the
//! same words, and the same half-applied state after an error.
//!
//! Releases differ too much for one parser: [`checked`] is for torch up to 2.9, [`stepped`] for later releases.

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

/// The message for an unknown backend, which is the same in all releases.
const UNKNOWN_BACKEND: &str = "Unknown allocator backend, options are native and cudaMallocAsync";

/// When a settings string is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParsePhase {
    /// From the environment, when CUDA is initialized.
    Startup,
    /// Later, through `torch._C._accelerator_setAllocatorSettings`.
    Runtime,
}

/// Parses `conf` into `config` as PyTorch does for a program that changes its settings at run time.
///
/// Every call first resets `max_split_size`, the divisions and the garbage collection threshold; since torch 2.11 also
/// `max_non_split_rounding`. Other settings keep their values unless they are named.
///
/// # Errors
///
/// Errors in PyTorch's words. The settings before the mistake and the resets are then in force.
pub fn parse(conf: &str, profile: &Profile, config: &mut AllocatorConfig) -> Result<(), ConfigError> {
    read(conf, profile, config, ParsePhase::Runtime)
}

impl AllocatorConfig {
    /// Returns the settings of a program that starts with `conf` in its environment.
    ///
    /// # Errors
    ///
    /// Errors in PyTorch's words, with which `torch.cuda.init` fails. They differ from those of [`parse`] for some
    /// strings, since the two parsers run in the opposite order and exceptions are translated differently.
    pub fn from_conf(conf: &str, profile: &Profile) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        read(conf, profile, &mut config, ParsePhase::Startup)?;
        Ok(config)
    }
}

fn read(conf: &str, profile: &Profile, config: &mut AllocatorConfig, phase: ParsePhase) -> Result<(), ConfigError> {
    match profile.separators {
        Separators::Checked => checked::read(conf, profile, config),
        Separators::SteppedOver => stepped::read(conf, profile, config, phase),
    }
}

/// Applies the resets of every call (`parseArgs` in all releases).
fn reset(conf: &str, config: &mut AllocatorConfig) {
    conf.clone_into(&mut config.conf);
    config.max_split_size = u64::MAX;
    config.roundup_power2_divisions = [0; 16];
    config.garbage_collection_threshold = 0.0;
}

/// Returns MiB as bytes, saturating, for settings whose names end in `_mb`.
fn mebibytes(count: u64) -> u64 {
    count.min(u64::MAX >> 20) << 20
}
