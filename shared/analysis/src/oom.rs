//! Where requests failed. [`doctor`] finds the reasons.

use trace::DeviceTrace;
use trace::event::Action;

/// Returns the positions right after out-of-memory events, and the rounded bytes of the requests.
pub fn positions(trace: &DeviceTrace) -> Vec<(u32, u64)> {
    positions_from(trace, 0).collect()
}

/// Returns the position right after the failure that matters most, among those of [`positions`]: the last, if the
/// program allocated nothing after it and so ended with it; otherwise the first, as the program caught its failures.
pub fn decisive(trace: &DeviceTrace, failures: &[(u32, u64)]) -> Option<u32> {
    let (last, _) = *failures.last()?;
    if is_end(trace, failures) { Some(last) } else { failures.first().map(|(position, _)| *position) }
}

/// Returns whether the program ended with the last of the failures, which are those of [`positions`]: it allocated nothing
/// after it.
pub fn is_end(trace: &DeviceTrace, failures: &[(u32, u64)]) -> bool {
    failures.last().is_some_and(|(last, _)| {
        let mut later = trace.events.action.range(*last as usize..trace.events.len());
        !later.any(|action| action == Action::Alloc as u8)
    })
}

/// Returns the positions right after the out-of-memory events from event `start` on, and the rounded bytes of the
/// requests.
pub fn positions_from(trace: &DeviceTrace, start: usize) -> impl Iterator<Item = (u32, u64)> {
    let actions = trace.events.action.range(start..trace.events.len());
    let failed = (start..).zip(actions).filter(|(_, action)| *action == Action::Oom as u8);
    failed.filter_map(|(i, _)| Some((u32::try_from(i + 1).ok()?, trace.events.size.get(i)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_failure_is_decisive_if_it_ended_the_program() {
        let decisive = |rest: &str| {
            let lines = format!("alloc 0x1000000 1000\noom 100 5000\nalloc 0x1100000 300\noom 100 7000\n{rest}");
            let trace = &trace::testing::snapshot(&lines).devices[0];
            assert_eq!(positions(trace), [(2, 5000), (4, 7000)]);
            decisive(trace, &positions(trace))
        };
        assert_eq!(decisive(""), Some(4));
        assert_eq!(decisive("free 0x1000000"), Some(4));
        assert_eq!(decisive("alloc 0x1200000 300"), Some(2));
        assert_eq!(super::decisive(&DeviceTrace::default(), &[]), None);
        let ended = |rest: &str| {
            let trace = &trace::testing::snapshot(&format!("alloc 0x1000000 1000\noom 100 5000\n{rest}")).devices[0];
            is_end(trace, &positions(trace))
        };
        assert!(ended("free 0x1000000") && !ended("alloc 0x1200000 300"), "one failure that was caught");
        assert!(!is_end(&DeviceTrace::default(), &[]));
    }
}
