//! Requests that the allocator could serve only after it had released cached memory.
//!
//! PyTorch counts them as `num_alloc_retries`, but a trace does not say the number. It shows each of them: segments are
//! freed (or pages unmapped) with the call site of the request, and the next thing the allocator does is to take memory
//! from the driver for the same call site. After `torch.cuda.empty_cache()` the call sites differ.
//!
//! Requests of PyTorch's own threads have no call site. Those are retries if the driver can't have had enough before: what
//! it gives then is larger than each segment that was released, and more than was ever reserved if nothing had been.

use trace::DeviceTrace;
use trace::event::Action;
use trace::frames::StackId;

/// Why cached memory was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// For a request that was served then.
    Retry,
    /// For a request that failed then.
    Failed,
    /// The program asked for it, with `torch.cuda.empty_cache()` most often.
    Asked,
}

/// Cached memory that was released at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The position before it.
    pub position: u32,
    /// The number of calls of the driver.
    pub calls: u32,
    /// The bytes that were released.
    pub bytes: u64,
    /// The call site.
    pub stack: StackId,
    /// Why.
    pub reason: Reason,
}

/// Returns the number of requests that were served only after cached memory had been released.
///
/// Releases of garbage collection and of oversize blocks count too: they make the request wait in the same way.
pub fn count(trace: &DeviceTrace) -> u32 {
    let mut count = 0;
    releases(trace, |release| count += u32::from(release.reason == Reason::Retry));
    count
}

/// Visits every release of cached memory, in order.
pub fn releases(trace: &DeviceTrace, mut visit: impl FnMut(Release)) {
    let mut open: Option<Release> = None;
    let mut taken = Taken::of(trace);
    let length = trace.events.len();
    let actions = trace.events.action.range(0..length);
    for ((i, code), stack) in (0_u32..).zip(actions).zip(trace.events.stack.iter()) {
        let action = Action::from_code(code);
        let reason = match action {
            Action::SegmentFree | Action::SegmentUnmap => {
                let bytes = trace.events.size.get(i as usize).unwrap_or(0);
                taken.release(bytes, open.is_none());
                match &mut open {
                    Some(open) if open.stack.0 == stack => {
                        open.calls += 1;
                        open.bytes = open.bytes.saturating_add(bytes);
                        continue;
                    }
                    _ => {}
                }
                let next = Release { position: i, calls: 1, bytes, stack: StackId(stack), reason: Reason::Asked };
                if let Some(before) = open.replace(next) {
                    visit(before);
                }
                continue;
            }
            // The wait for the streams completes frees between the releases.
            Action::FreeCompleted => continue,
            Action::SegmentAlloc | Action::SegmentMap => {
                taken.take(trace.events.size.get(i as usize).unwrap_or(0));
                Reason::Retry
            }
            Action::Oom => Reason::Failed,
            _ => Reason::Asked,
        };
        if let Some(release) = open.take() {
            let is_own = match reason {
                _ if stack != 0 && release.stack.0 != 0 => release.stack.0 == stack,
                Reason::Retry => taken.exceeds_driver_memory,
                _ => true,
            };
            visit(Release { reason: if is_own { reason } else { Reason::Asked }, ..release });
        }
    }
    open.into_iter().for_each(visit);
}

/// The memory taken from the driver since the start of a trace.
#[derive(Debug, Default)]
struct Taken {
    /// Bytes that are taken now, beyond those at the start.
    bytes: i128,
    /// The largest value that `bytes` has in the whole trace.
    most: i128,
    /// The value of `bytes` before the first release that no request has followed yet.
    before: i128,
    /// The size of the largest of these releases.
    largest: u64,
    /// Whether what was taken last is more than the driver can have had before the releases.
    exceeds_driver_memory: bool,
}

impl Taken {
    fn of(trace: &DeviceTrace) -> Self {
        let (mut bytes, mut most) = (0_i128, 0);
        for (i, code) in trace.events.action.iter().enumerate() {
            let size = || i128::from(trace.events.size.get(i).unwrap_or(0));
            match Action::from_code(code) {
                Action::SegmentAlloc | Action::SegmentMap => bytes += size(),
                Action::SegmentFree | Action::SegmentUnmap => bytes -= size(),
                _ => {}
            }
            most = most.max(bytes);
        }
        Self { most, ..Self::default() }
    }

    fn release(&mut self, bytes: u64, is_first: bool) {
        if is_first {
            (self.before, self.largest) = (self.bytes, 0);
        }
        self.bytes -= i128::from(bytes);
        self.largest = self.largest.max(bytes);
    }

    fn take(&mut self, bytes: u64) {
        self.exceeds_driver_memory = bytes > self.largest && self.before + i128::from(bytes) > self.most;
        self.bytes += i128::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &str) -> u32 {
        let snapshot = trace::testing::snapshot(&format!("segment_alloc 0x1000000 20971520 a@/m/a.py:1\n{lines}"));
        count(&snapshot.devices[0])
    }

    #[test]
    fn a_release_for_the_request_itself_is_a_retry() {
        let retry = "segment_free 0x1000000 b@/m/b.py:1
                     segment_alloc 0x1000000 30000000 b@/m/b.py:1
                     alloc 0x1000000 30000000 b@/m/b.py:1";
        assert_eq!(check(retry), 1);
        assert_eq!(check(""), 0);
    }

    #[test]
    fn each_release_has_its_reason() {
        let lines = "segment_alloc 0x1000000 20971520 a@/m/a.py:1
                     segment_alloc 0x4000000 20971520 a@/m/a.py:1
                     segment_free 0x1000000 b@/m/b.py:1
                     segment_free 0x4000000 b@/m/b.py:1
                     segment_alloc 0x1000000 30000000 b@/m/b.py:1
                     alloc 0x1000000 30000000 b@/m/b.py:1
                     free 0x1000000
                     segment_free 0x1000000 empty_cache@/m/c.py:1";
        let snapshot = trace::testing::snapshot(lines);
        let mut found = Vec::new();
        releases(&snapshot.devices[0], |release| {
            found.push((release.position, release.calls, release.bytes, release.reason));
        });
        assert_eq!(found, [(2, 2, 41_943_040, Reason::Retry), (8, 1, 30_000_000, Reason::Asked)]);
    }

    #[test]
    fn empty_cache_and_failed_requests_are_none() {
        let emptied = "segment_free 0x1000000 empty_cache@/m/c.py:1
                       segment_alloc 0x1000000 30000000 b@/m/b.py:1";
        let failed = "segment_free 0x1000000 b@/m/b.py:1
                      oom 100 30000000 b@/m/b.py:1
                      segment_alloc 0x1000000 30000000 b@/m/b.py:1";
        assert_eq!([emptied, failed].map(check), [0, 0]);
    }

    #[test]
    fn without_a_stack_sizes_tell_a_retry() {
        let lines = |between: &str, bytes: u64, after: &str| {
            format!("segment_free 0x1000000\n{between}segment_alloc 0x1000000 {bytes}\n{after}")
        };
        let cases = [
            (lines("", 30_000_000, ""), 1),
            // Only the release or only the request has a stack.
            (lines("", 30_000_000, "").replacen('\n', " b@/m/b.py:1\n", 1), 1),
            // Not larger than what was released.
            (lines("", 20_971_520, ""), 0),
            // Later, more is reserved than both together: the driver had enough.
            (lines("", 30_000_000, "segment_alloc 0x8000000 30000000"), 0),
            // Something else happened in between; or the request failed.
            (lines("alloc 0x4000000 512\n", 30_000_000, ""), 0),
            (lines("oom 100 30000000\n", 30_000_000, ""), 0),
        ];
        for (lines, want) in cases {
            assert_eq!(check(&lines), want, "{lines}");
        }
    }
}
