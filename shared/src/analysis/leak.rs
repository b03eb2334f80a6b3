//! Finds the call site whose live bytes keep rising: what a leak looks like in a trace.

use crate::frames::StackId;
use crate::replay::{Change, Replay};
use crate::trace::DeviceTrace;

/// Equal parts that the events are divided into. A training step has to fit into one, or its own rise and fall would
/// look like a trend.
const WINDOWS: u32 = 8;
/// Windows at the start that are ignored: weights and optimizer state are allocated there and stay.
const WARMUP_WINDOWS: usize = 2;
/// A rise below one part in this many of the peak is too small to matter.
const LEAST_PART_OF_PEAK: u64 = 20;

/// A call site whose live bytes rise from window to window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakCandidate {
    /// The call site.
    pub stack: StackId,
    /// The least requested bytes that it held within the first window after the warm-up.
    pub first_bytes: u64,
    /// The least requested bytes that it held within the last window.
    pub last_bytes: u64,
}

impl LeakCandidate {
    /// Returns the bytes by which the call site's use rose.
    pub fn rise(&self) -> u64 {
        self.last_bytes.saturating_sub(self.first_bytes)
    }

    /// Returns the call site whose use rises most in the first `end` positions, if any does.
    ///
    /// A site's use rises if the least it holds within each window is more than in the window before. Activations come
    /// and go within a step, so their least use is zero; weights stay constant. While a program sets up, everything
    /// grows and little is freed: if any later window frees less than half as many allocations as it makes, the answer
    /// is `None`. `peak_bytes` is the largest sum of requested bytes, which the rise has to be significant against.
    pub fn largest(trace: &DeviceTrace, replay: &Replay, end: u32, peak_bytes: u64) -> Option<Self> {
        let windows = least_by_window(trace, replay, end)?;
        let at = |window: usize, stack: usize| windows.get(window).and_then(|w| w.get(stack)).copied().unwrap_or(0);
        let last = windows.len().checked_sub(1)?;
        let rises = |stack: &usize| (WARMUP_WINDOWS..last).all(|window| at(window, *stack) < at(window + 1, *stack));
        let stacks = windows.last().map_or(0, Vec::len);
        (0..stacks)
            .filter(rises)
            .map(|stack| Self {
                stack: StackId(stack as u32),
                first_bytes: at(WARMUP_WINDOWS, stack),
                last_bytes: at(last, stack),
            })
            .max_by_key(Self::rise)
            .filter(|candidate| candidate.rise() >= peak_bytes / LEAST_PART_OF_PEAK)
    }
}

/// Returns the least bytes that each stack held within each window; `None` if the program was still setting up.
fn least_by_window(trace: &DeviceTrace, replay: &Replay, end: u32) -> Option<Vec<Vec<u64>>> {
    let mut live: Vec<u64> = Vec::new();
    let mut windows: Vec<Vec<u64>> = Vec::new();
    let of = |id: u32| {
        let allocations = &replay.allocations;
        let stack = allocations.stack.get(id as usize).unwrap_or(0) as usize;
        (stack, allocations.requested.get(id as usize).unwrap_or(0))
    };
    let bound = |window: u32| (u64::from(end) * u64::from(window) / u64::from(WINDOWS)) as u32;
    for window in 0..WINDOWS {
        let mut least = live.clone();
        let (mut begun, mut ended) = (0_u64, 0_u64);
        replay.changes(trace, bound(window), bound(window + 1), |_, change| match change {
            Change::Begin(id) => {
                begun += 1;
                let (stack, bytes) = of(id);
                if live.len() <= stack {
                    live.resize(stack + 1, 0);
                }
                if let Some(now) = live.get_mut(stack) {
                    *now = now.saturating_add(bytes);
                }
            }
            Change::End(id) => {
                ended += 1;
                let (stack, bytes) = of(id);
                if let Some(now) = live.get_mut(stack) {
                    *now = now.saturating_sub(bytes);
                    if let Some(least) = least.get_mut(stack) {
                        *least = (*least).min(*now);
                    }
                }
            }
            Change::Freed(_) | Change::Reserved(_) => {}
        });
        if windows.len() >= WARMUP_WINDOWS && ended * 2 < begun {
            return None;
        }
        windows.push(least);
    }
    Some(windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forty steps, each of which allocates and frees an activation and keeps `kept(step)` bytes.
    fn largest(kept: impl Fn(u64) -> Option<u64>) -> Option<(u64, u64)> {
        let mut lines = vec!["segment_alloc 0x1000000 20971520".to_owned()];
        for step in 0..40 {
            lines.push("alloc 0x1000000 4000 activation@/m/a.py:1".to_owned());
            if let Some(bytes) = kept(step) {
                lines.push(format!("alloc {} {bytes} kept@/m/a.py:2", 0x110_0000 + 4_096 * step));
            }
            lines.push("free 0x1000000".to_owned());
        }
        let mut snapshot = crate::testing::snapshot(&lines.join("\n"));
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let found = LeakCandidate::largest(&trace, &replay, replay.positions(), 40_000)?;
        assert_eq!(found.stack, trace.events.get(2).map(|event| event.stack).unwrap());
        Some((found.first_bytes, found.last_bytes))
    }

    #[test]
    fn a_site_that_keeps_a_tensor_of_every_step_is_found() {
        assert_eq!(largest(|_| Some(1_000)), Some((10_000, 35_000)));
    }

    #[test]
    fn level_and_slightly_rising_sites_are_no_candidates() {
        assert_eq!(largest(|step| (step < 8).then_some(1_000)), None);
        assert_eq!(largest(|_| Some(8)), None);
        assert_eq!(largest(|_| None), None);
    }
}
