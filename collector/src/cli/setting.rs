//! Settings that `run`, `budget` and `replay` share: a device, its memory, the allocator's release and settings.

use allocator::{AllocatorConfig, Profile};
use clap::ValueEnum;

use super::conf;
use super::message::{one_line, warn};
use crate::size;
use recorder::allocator::Release;

/// The most memory of a simulated device: it has that many addresses.
const MOST_CAPACITY: u64 = 1 << 40;

/// The source of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Driver {
    /// A simulated device
    Sim,
    /// A CUDA device
    Cuda,
}

impl std::fmt::Display for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sim => "sim",
            Self::Cuda => "cuda",
        })
    }
}

/// Less than this is a number without its unit: no device has so little memory.
const LEAST_CAPACITY: u64 = 1 << 20;

/// Reads an amount of a device's memory, such as `80GiB`.
pub(super) fn capacity(text: &str) -> Result<u64, String> {
    match size::parse(text, MOST_CAPACITY) {
        Some(1..LEAST_CAPACITY) if text.trim().bytes().all(|byte| byte.is_ascii_digit()) => {
            let text = text.trim();
            Err(format!("{text:?} is a number of bytes. Write it with a unit, like {text}GiB."))
        }
        Some(bytes) => Ok(bytes),
        None => Err(format!("{text:?} is not an amount of memory. Write it like 80GiB or 512MiB, up to 1TiB.")),
    }
}

/// Reads a share, such as `0.3`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = text.trim().parse().ok().filter(|share| (f64::MIN_POSITIVE..1.0).contains(share));
    share.ok_or_else(|| "a share is more than 0 and less than 1, such as 0.3".to_owned())
}

/// Returns the profile of a release. If that is an older one than was named, prints a warning to standard error.
pub(super) fn profile(torch: &str) -> Result<&'static Profile, String> {
    let Release { profile, is_exact } = Release::of(torch).map_err(|error| format!("--torch: {error}"))?;
    if !is_exact {
        warn(&format!(
            "no profile for torch {}; using {}, the nearest older one. Profiles: {}.",
            one_line(torch),
            profile.torch,
            Release::known()
        ));
    }
    Ok(profile)
}

/// Reads the release and the settings of the allocator.
pub(super) fn allocator(torch: &str, conf: &str) -> Result<(&'static Profile, AllocatorConfig), String> {
    let profile = profile(torch)?;
    Ok((profile, conf::read("--conf", conf, profile)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        let cases = [("0.3", Some(0.3)), (" 0.5 ", Some(0.5)), ("0", None), ("1", None), ("-1", None), ("NaN", None)];
        for (text, want) in cases {
            assert_eq!(share(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn amounts_of_memory() {
        let cases = [
            ("80GiB", Some(80 << 30)),
            ("1.5 GiB", Some(3 << 29)),
            ("24G", Some(24 << 30)),
            ("512 MiB", Some(512 << 20)),
            ("80GB", Some(80_000_000_000)),
            ("2097152", Some(2 << 20)),
            ("1TiB", Some(1 << 40)),
            ("2TiB", None),
            ("0", None),
            ("-1GiB", None),
            ("1e3GiB", None),
            ("GiB", None),
            ("inf", None),
            ("..GiB", None),
            ("99999999999999999999999999GiB", None),
            ("", None),
            ("much", None),
        ];
        for (text, want) in cases {
            assert_eq!(capacity(text).ok(), want, "{text}");
        }
    }
}
