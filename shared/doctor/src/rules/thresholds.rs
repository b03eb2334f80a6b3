//! The thresholds from which on something is worth a finding, each with its reason.

/// Bytes below which no finding is made about memory that is wasted: one segment of the large pool. Less than that is
/// how the allocator works. It does not hold for a request that failed.
pub(super) const LEAST_BYTES: u64 = 20 << 20;

/// Leaks that are reported one by one. Further ones most often have the same cause.
pub(super) const LEAKS: usize = 3;
/// The fewest steps after which a leak is reported that is too small to make a request fail.
pub(super) const STEPS_OF_SMALL_LEAK: u32 = 10;
/// A leak from this part of the peak on, in percent, ends the run sooner or later.
pub(super) const GRAVE_LEAK_PERCENT: u64 = 5;
/// Growth that levels off, or that is freed again, from this part of the peak on, in percent: less does not decide
/// whether a run fits.
pub(super) const GROWTH_PERCENT: u64 = 10;

/// Steps after the first from which on a rise of their peaks is a trend.
pub(super) const STEPS_OF_GROWTH: usize = 6;

/// Memory in gaps that a request could not use, in percent of the reserved memory. A healthy run stays below: its
/// segments are filled by requests of the sizes that made them.
pub(super) const FRAGMENTED_PERCENT: u64 = 10;
/// Memory in such gaps while reserved memory was below its peak, in percent of that peak. The threshold is higher,
/// because gaps that are used later cost nothing.
pub(super) const FRAGMENTED_PERCENT_OF_PEAK: u64 = 12;
/// A segment counts as pinned if blocks use at most one part in this many of it.
pub(super) const PINNED_PART: u64 = 16;
/// Free memory in pinned segments, in percent of the largest reserved memory.
pub(super) const PINNED_PERCENT: u64 = 5;
/// Lines that a finding names. More do not fit into a sentence.
pub(super) const NAMED_LINES: usize = 2;

/// Memory that `roundup_power2_divisions` adds, in percent of what is active at the peak. The setting is meant to cost
/// a little; from here on it costs more than fragmentation does in most runs.
pub(super) const ROUNDING_PERCENT: u64 = 5;

/// Memory that waits for streams, in percent of the peak of active memory.
pub(super) const WAITING_PERCENT: u64 = 5;

/// The part of the events in which a program sets up, one in this many: it calls the driver for good reasons there.
pub(super) const WARMUP_PART: u32 = 4;
/// Retries below this number are noted, not warned of: a program may run into its limit once and go on.
pub(super) const FEW_RETRIES: u64 = 5;
/// Calls of the driver after the warm-up from which on they are reported: fewer cost a few milliseconds at most.
pub(super) const DRIVER_CALLS: u32 = 20;
/// Times that memory is released after the warm-up from which on that is a habit, not an incident.
pub(super) const RELEASES: u64 = 3;
/// Calls of the driver for each 1,000 events after the warm-up. A call takes about as long as hundreds of requests that
/// are served from the cache, so from here on they take part of the allocator's time.
pub(super) const DRIVER_CALLS_PER_THOUSAND: u64 = 2;

/// Memory taken from the driver while a large enough gap lay in another stream or pool, in percent of the largest
/// reserved memory.
pub(super) const STUCK_PERCENT: u64 = 5;

/// What one line adds to the peak for a moment, in percent of the peak. Less decides less often whether a run fits than
/// the batch does.
pub(super) const SPIKE_PERCENT: u64 = 15;
/// A line makes a spike if it holds on average at most this part of what it holds at the peak, in percent. Activations
/// hold a quarter or more, since each step has them.
pub(super) const SPIKE_MEAN_PERCENT: u64 = 20;
/// The longest spike, in percent of the events.
pub(super) const SPIKE_LENGTH_PERCENT: u64 = 10;

/// Memory of the device that others hold, in percent of its capacity.
pub(super) const OTHERS_PERCENT: u64 = 5;
/// Bytes that a process needs on a device besides its segments: the CUDA context with its kernels and libraries takes a
/// few hundred MiB.
pub(super) const CONTEXT_BYTES: u64 = 1 << 30;

/// Events from which on a trace shows that a setting concerns no request of the program. Shorter ones show too little of it.
pub(super) const CONCLUSIVE_EVENTS: usize = 1_000;

/// Returns whether `part` is at least `percent` percent of `whole`.
pub(super) fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}
