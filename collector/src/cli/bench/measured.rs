//! What the requests come to in one allocator.

use serde::Serialize;
use whatif::{Call, Requests};

use crate::cli::subject::Subject;

/// The allocators that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Allocator {
    /// PyTorch's caching allocator over `cudaMalloc`.
    Caching,
    /// The driver's pools: `cudaMallocAsync`, with the settings of PyTorch's backend of that name.
    StreamOrdered,
    /// PyTorch's caching allocator over `cudaMallocManaged`.
    CachingManaged,
    /// `cudaMalloc` and `cudaFree` for each request.
    Plain,
    /// `cudaMallocManaged` and `cudaFree` for each request, moved to the device at once.
    Managed,
}

impl Allocator {
    /// All of them, in the order of the table.
    pub(super) const ALL: [Self; 5] =
        [Self::Caching, Self::StreamOrdered, Self::CachingManaged, Self::Plain, Self::Managed];

    /// Returns its name for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Caching => "caching allocator",
            Self::StreamOrdered => "stream-ordered pool",
            Self::CachingManaged => "caching allocator, unified memory",
            Self::Plain => "device memory, a call each",
            Self::Managed => "unified memory, a call each",
        }
    }
}

/// The duration of calls on a GPU, in nanoseconds of the calling thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Durations {
    /// Half of the calls take no longer.
    pub(super) median_ns: u64,
    /// 99 of 100 calls take no longer.
    pub(super) p99_ns: u64,
    /// The average.
    pub(super) mean_ns: u64,
    /// The longest.
    pub(super) longest_ns: u64,
}

impl Durations {
    /// Sums up durations; `None` if there are none.
    pub(super) fn of(all: &mut [u64]) -> Option<Self> {
        all.sort_unstable();
        let at = |share: f64| all.get(((all.len() - 1) as f64 * share) as usize).copied().unwrap_or_default();
        let sum: u64 = all.iter().sum();
        let longest_ns = all.last().copied()?;
        Some(Self { median_ns: at(0.5), p99_ns: at(0.99), mean_ns: sum / all.len() as u64, longest_ns })
    }
}

/// What the requests come to in one allocator. Sizes are in bytes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    pub(super) allocator: Allocator,
    /// Calls of the driver for device memory; `None` if it makes them by itself.
    pub(super) driver_calls: Option<u64>,
    /// The most bytes that were reserved; `None` if nobody can tell without a GPU.
    pub(super) peak_reserved: Option<u64>,
    /// What it reserves at least.
    pub(super) peak_reserved_at_least: u64,
    /// The share of the reserved peak that was not requested at any time: rounding, caching and fragmentation.
    pub(super) fragmentation: Option<f64>,
    /// Requests that it did not serve, though they were served in the recording.
    pub(super) failed: u64,
    /// Durations of requests, on a GPU.
    pub(super) allocate: Option<Durations>,
    /// Durations of frees, on a GPU.
    pub(super) free: Option<Durations>,
    /// The duration of all calls in each round, on a GPU, in nanoseconds.
    pub(super) totals_ns: Vec<u64>,
    /// Why there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unavailable: Option<String>,
}

impl Measured {
    /// Returns an allocator of which only the least is known.
    pub(super) fn unknown(allocator: Allocator, peak_requested: u64) -> Self {
        Self {
            allocator,
            driver_calls: None,
            peak_reserved: None,
            peak_reserved_at_least: peak_requested,
            fragmentation: None,
            failed: 0,
            allocate: None,
            free: None,
            totals_ns: Vec::new(),
            unavailable: None,
        }
    }

    /// Adds the reserved peak. If requests failed, what was requested at once is not known to have been there.
    pub(super) fn reserved(self, peak: u64) -> Self {
        let requested = self.peak_reserved_at_least;
        let is_whole = self.failed == 0 && peak > 0;
        let fragmentation = is_whole.then(|| peak.saturating_sub(requested) as f64 / peak as f64);
        Self { peak_reserved: Some(peak), peak_reserved_at_least: peak, fragmentation, ..self }
    }
}

/// The calls of the recording, with what was held before them.
pub(super) struct Calls {
    pub(super) start: Vec<Call>,
    pub(super) calls: Vec<Call>,
    /// How many numbers allocations have.
    pub(super) numbers: usize,
    pub(super) requests: u64,
    pub(super) frees: u64,
    /// Requests of private pools.
    pub(super) private: u64,
    pub(super) peak_requested: u64,
}

impl Calls {
    pub(super) fn of(requests: &Requests) -> Self {
        let calls: Vec<Call> = requests.calls().collect();
        let count = |is: fn(&Call) -> bool| calls.iter().filter(|call| is(call)).count() as u64;
        Self {
            start: requests.held_at_start().collect(),
            numbers: requests.numbers(),
            requests: count(|call| matches!(call, Call::Allocate { .. })),
            frees: count(|call| matches!(call, Call::Free { .. })),
            private: count(|call| matches!(call, Call::Allocate { pool, .. } if pool.is_private())),
            peak_requested: requests.peak_requested(),
            calls,
        }
    }
}

/// Counts on a simulated device. Only PyTorch's allocator decides by itself what is reserved; of what the driver decides, the
/// least is known.
pub(super) fn counted(subject: &Subject, conf: &str, calls: &Calls) -> Result<Vec<Measured>, String> {
    let outcome = subject.requests.run(&subject.terms(conf)?);
    let outcome = outcome.map_err(|error| format!("The trace can't be repeated: {error}."))?;
    let counted = |allocator| {
        let unknown = Measured::unknown(allocator, calls.peak_requested);
        match allocator {
            // Its decisions do not depend on where segments come from.
            Allocator::Caching | Allocator::CachingManaged => {
                let failed = outcome.ooms.saturating_sub(subject.requests.failed() as u64);
                let measured = Measured { driver_calls: Some(outcome.driver_calls()), failed, ..unknown };
                measured.reserved(outcome.peak_reserved)
            }
            Allocator::StreamOrdered => unknown,
            Allocator::Plain | Allocator::Managed => {
                Measured { driver_calls: Some(calls.requests + calls.frees), ..unknown }
            }
        }
    };
    Ok(Allocator::ALL.into_iter().map(counted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_summed_up_by_rank() {
        let mut all: Vec<u64> = (1..=100).rev().collect();
        let wanted = Durations { median_ns: 50, p99_ns: 99, mean_ns: 50, longest_ns: 100 };
        assert_eq!(Durations::of(&mut all), Some(wanted));
        assert_eq!(Durations::of(&mut []), None);
    }

    #[test]
    fn fragmentation_is_what_was_reserved_and_never_requested() {
        let measured = Measured::unknown(Allocator::Plain, 75).reserved(100);
        assert_eq!((measured.fragmentation, measured.peak_reserved_at_least), (Some(0.25), 100));
        let failed = Measured { failed: 1, ..Measured::unknown(Allocator::Plain, 75) }.reserved(50);
        assert_eq!((failed.fragmentation, failed.peak_reserved), (None, Some(50)));
    }
}
