//! Watches a running job's memory and says when much of it becomes unusable.
//!
//! The *unusable share* is [`unusable_share`]: 1 − the largest request that can be served ÷ all cached bytes. It says
//! nothing while little is cached, so it is watched only from [`LEAST_SHARE`] of the device's memory on.

use std::fmt;

use query::setting::{self, merged};
use replay::{FreeSums, unusable_share};
use trace::units::{Bytes, Count};

/// The share of the device's memory that must be cached before the unusable share matters.
pub(super) const LEAST_SHARE: f64 = 0.05;

/// The cached bytes from which on the unusable share matters on a device of unknown size.
pub(super) const LEAST_BYTES: u64 = 256 << 20;

/// Tells when the unusable share of a device's cached memory passes a threshold.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    threshold: f64,
    least: u64,
    is_over: bool,
    times: u64,
}

impl Monitor {
    /// Creates a monitor for a device with so many bytes of memory; 0 if that is unknown.
    pub(super) fn new(threshold: f64, capacity: u64) -> Self {
        let least = if capacity == 0 { LEAST_BYTES } else { (capacity as f64 * LEAST_SHARE) as u64 };
        Self { threshold, least, is_over: false, times: 0 }
    }

    /// Looks at the cached bytes and the largest request that can be served. Returns how many times the share has passed
    /// the threshold if it passes it now and that is worth a line: the first, second, fourth, eighth time and so on, as a
    /// share that rises in every step would fill the terminal. Before it can pass again, it must have fallen below.
    pub(super) fn look(&mut self, cached: u64, largest_servable: u64) -> Option<u64> {
        let is_over = cached >= self.least.max(1) && unusable_share(largest_servable, cached) >= self.threshold;
        let passes = is_over && !self.is_over;
        self.is_over = is_over;
        self.times = self.times.saturating_add(u64::from(passes));
        (passes && self.times.is_power_of_two()).then_some(self.times)
    }
}

/// A line that says what was found, and what to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning<'a> {
    /// The gaps.
    pub sums: FreeSums,
    /// Bytes taken from the driver.
    pub reserved: u64,
    /// How many times the share has passed the threshold.
    pub times: u64,
    /// Whether the allocator already uses expandable segments.
    pub is_expandable: bool,
    /// The allocator's settings.
    pub conf: &'a str,
}

impl fmt::Display for Warning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sums, reserved, times, is_expandable, conf } = *self;
        let percent = (sums.unusable_share() * 100.0).floor();
        write!(f, "{percent} % of the cached memory is unusable: of {} cached", Bytes(sums.cached))?;
        write!(
            f,
            " ({} reserved), the largest request that fits has {}. ",
            Bytes(reserved),
            Bytes(sums.largest_servable())
        )?;
        let (split, whole) = (Bytes(sums.inactive_split), Bytes(sums.cached_whole));
        write!(f, "{split} are gaps in segments that are in use, {whole} are whole segments. ")?;
        // As for a request that failed: expandable segments join whole pages, and nothing else.
        let would_join = !is_expandable && sums.whole_pages > sums.largest_servable();
        let setting;
        f.write_str(match (sums.inactive_split >= sums.cached_whole, would_join) {
            (true, true) => {
                setting = format!("Try {}.", setting::line(&merged(conf, "expandable_segments:True")));
                &setting
            }
            (true, false) => "Try to allocate what lives long before what lives short.",
            (false, _) => "Try torch.cuda.empty_cache(), which gives whole segments back to the driver.",
        })?;
        if times > 1 { write!(f, " This has happened {} times.", Count(times)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_once_and_again_only_after_the_share_fell() {
        let mut monitor = Monitor::new(0.3, 1_000);
        // The cached bytes, the largest request that can be served, and the result.
        let looks = [
            (49, 0, None),      // Too little is cached.
            (100, 71, None),    // Below the threshold.
            (100, 70, Some(1)), // At the threshold.
            (100, 10, None),    // Still above it.
            (100, 71, None),    // It fell.
            (100, 50, Some(2)), // Passed again.
            (0, 0, None),       // Nothing is cached.
            (100, 50, None),    // The third time has no line.
            (40, 0, None),      // Fell: too little is cached.
            (100, 50, Some(4)),
        ];
        for (i, (cached, largest, want)) in looks.into_iter().enumerate() {
            assert_eq!(monitor.look(cached, largest), want, "look {i}");
        }
        assert_eq!(Monitor::new(0.3, 0).look(LEAST_BYTES - 1, 0), None);
        assert_eq!(Monitor::new(0.3, 0).look(LEAST_BYTES, 0), Some(1));
    }

    #[test]
    fn a_warning_says_what_was_found_and_what_to_try() {
        let sums = FreeSums { cached: 8 << 30, cached_whole: 1 << 30, inactive_split: 7 << 30, ..FreeSums::default() };
        let warning = Warning {
            sums: FreeSums { largest_large_gap: 3 << 30, whole_pages: 6 << 30, ..sums },
            reserved: 20 << 30,
            times: 1,
            is_expandable: false,
            conf: "max_split_size_mb:64",
        };
        assert_eq!(
            warning.to_string(),
            "62 % of the cached memory is unusable: of 8.00 GiB cached (20.0 GiB reserved), the largest request that fits \
             has 3.00 GiB. 7.00 GiB are gaps in segments that are in use, 1.00 GiB are whole segments. Try \
             PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64,expandable_segments:True."
        );
        let text = Warning { is_expandable: true, times: 4, ..warning }.to_string();
        assert!(text.ends_with("Try to allocate what lives long before what lives short. This has happened 4 times."));
        // The gaps are smaller than a page.
        let small = FreeSums { whole_pages: 0, ..warning.sums };
        assert!(Warning { sums: small, ..warning }.to_string().ends_with("before what lives short."));
        let whole = FreeSums { cached_whole: 7 << 30, inactive_split: 1 << 30, ..warning.sums };
        assert!(Warning { sums: whole, ..warning }.to_string().contains("torch.cuda.empty_cache()"));
    }
}
