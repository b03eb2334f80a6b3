//! Requests that the allocator could serve only after it had released cached memory.
//!
//! PyTorch counts them as `num_alloc_retries`, but a trace does not say the number. It shows each of them: segments are
//! freed (or pages unmapped) with the call site of the request, and the next thing the allocator does is to take memory
//! from the driver for the same call site. After `torch.cuda.empty_cache()` the call sites differ.

use crate::event::Action;
use crate::trace::DeviceTrace;

/// Returns the number of requests that were served only after cached memory had been released.
///
/// Releases of garbage collection and of oversize blocks count too: they make the request wait in the same way. Events
/// without a stack never count, since nothing tells them from `empty_cache()`.
pub fn count(trace: &DeviceTrace) -> u32 {
    let mut count = 0;
    let mut released_for = None;
    let length = trace.events.len();
    let actions = trace.events.action.range(0..length);
    for (code, stack) in actions.zip(trace.events.stack.iter()) {
        match Action::from_code(code) {
            Action::SegmentFree | Action::SegmentUnmap if stack != 0 => released_for = Some(stack),
            Action::SegmentAlloc | Action::SegmentMap => {
                count += u32::from(released_for == Some(stack));
                released_for = None;
            }
            // The wait for the streams completes frees between the releases.
            Action::FreeCompleted => {}
            _ => released_for = None,
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &str) -> u32 {
        let snapshot = crate::testing::snapshot(&format!("segment_alloc 0x1000000 20971520 a@/m/a.py:1\n{lines}"));
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
    fn empty_cache_and_failed_requests_are_none() {
        let emptied = "segment_free 0x1000000 empty_cache@/m/c.py:1
                       segment_alloc 0x1000000 30000000 b@/m/b.py:1";
        let failed = "segment_free 0x1000000 b@/m/b.py:1
                      oom 100 30000000 b@/m/b.py:1
                      segment_alloc 0x1000000 30000000 b@/m/b.py:1";
        let without_stacks = "segment_free 0x1000000
                              segment_alloc 0x1000000 30000000";
        assert_eq!([emptied, failed, without_stacks].map(check), [0, 0, 0]);
    }
}
