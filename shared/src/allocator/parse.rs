//! The settings string, read as PyTorch reads it.

use super::config::AllocatorConfig;
use super::profile::Profile;

/// What Python raises for a settings string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// `ValueError`
    Value,
    /// `RuntimeError`
    Runtime,
    /// `IndexError`
    Index,
}

/// Why a settings string is refused, in PyTorch's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// What Python raises.
    pub kind: ErrorKind,
    /// PyTorch's first line.
    pub message: String,
}

/// Reads `conf` into `config`. On an error, what came before the mistake is in force.
pub fn parse(conf: &str, profile: &'static Profile, config: &mut AllocatorConfig) -> Result<(), ConfigError> {
    config.conf = conf.to_owned();
    config.max_split_size = u64::MAX;
    config.roundup_power2_divisions = [0; 16];
    config.garbage_collection_threshold = 0.0;
    let _ = profile;
    let mut depth = 0;
    let parts = conf.split(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    });
    for part in parts.filter(|p| !p.is_empty()) {
        let (key, value) = part.split_once(':').unwrap();
        match key {
            "max_split_size_mb" => config.max_split_size = value.parse::<u64>().unwrap() << 20,
            "max_non_split_rounding_mb" => config.max_non_split_rounding = value.parse::<u64>().unwrap() << 20,
            "large_segment_size_mb" => config.large_segment_size = value.parse::<u64>().unwrap() << 20,
            "garbage_collection_threshold" => config.garbage_collection_threshold = value.parse().unwrap(),
            "per_process_memory_fraction" => config.per_process_memory_fraction = Some(value.parse().unwrap()),
            "expandable_segments" => config.expandable_segments = value == "True",
            "roundup_power2_divisions" if value.starts_with('[') => {
                let mut last = 0;
                let mut first = true;
                for pair in value.trim_matches(['[', ']']).split(',') {
                    let (k, v) = pair.split_once(':').unwrap();
                    let v: u64 = v.parse().unwrap();
                    if k == ">" {
                        let from = if profile.rest_overwrites_last_division { last } else { last + 1 };
                        config.roundup_power2_divisions[from.min(15)..].fill(v);
                    } else {
                        last = (k.parse::<u64>().unwrap().ilog2() as usize).min(15);
                        if first {
                            config.roundup_power2_divisions[..last].fill(v);
                        }
                        config.roundup_power2_divisions[last] = v;
                        first = false;
                    }
                }
            }
            "roundup_power2_divisions" => config.roundup_power2_divisions = [value.parse().unwrap(); 16],
            _ => {}
        }
    }
    Ok(())
}
impl ErrorKind {
    /// shim
    pub fn python_name(self) -> &'static str {
        match self {
            Self::Value => "ValueError",
            Self::Runtime => "RuntimeError",
            Self::Index => "IndexError",
        }
    }
}
