//! A call site that only ever holds more: what a leak looks like in a trace.

use shared::frames::StackId;
use shared::replay::{Change, Replay};
use shared::trace::DeviceTrace;

/// Parts that a trace is cut into. A step of a program must fit in one for its comings and goings not to count.
const WINDOWS: u32 = 8;
/// The first ones are the program's start: weights and optimizer state come there and stay.
const SETTLED: usize = 2;
/// Growth below this share of the peak is nobody's trouble.
const SHARE: u64 = 20;

/// A call site whose least use rises from window to window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Growth {
    /// The site.
    pub(super) stack: StackId,
    /// The least that it held in the first window that counts, in requested bytes.
    pub(super) from: u64,
    /// The least in the last.
    pub(super) to: u64,
}

/// The site that grows most, up to a position; `None` if none does.
///
/// A site grows when the least that it holds within each window is more than in the window before it. Activations
/// come and go within a step, so their least use is nothing; weights stay as they are. While a program is being set up
/// everything grows and hardly anything goes: a window in which less than half as much goes as comes tells nothing.
pub(super) fn largest(trace: &DeviceTrace, replay: &Replay, end: u32, peak_bytes: u64) -> Option<Growth> {
    let mut live: Vec<u64> = Vec::new();
    let mut windows: Vec<Vec<u64>> = Vec::new();
    let mut is_steady = true;
    let of = |id: u32| {
        let allocations = &replay.allocations;
        let stack = allocations.stack.get(id as usize).unwrap_or(0) as usize;
        (stack, allocations.requested.get(id as usize).unwrap_or(0))
    };
    for window in 0..WINDOWS {
        let mut least = live.clone();
        let (mut begun, mut ended) = (0_u64, 0_u64);
        let bound = |n: u32| (u64::from(end) * u64::from(n) / u64::from(WINDOWS)) as u32;
        replay.changes(trace, bound(window), bound(window + 1), |_, change| match change {
            Change::Begin(id) => {
                begun += 1;
                let (stack, bytes) = of(id);
                if live.len() <= stack {
                    live.resize(stack + 1, 0);
                }
                live[stack] = live[stack].saturating_add(bytes);
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
            _ => {}
        });
        is_steady &= windows.len() < SETTLED || ended * 2 >= begun;
        windows.push(least);
    }
    if !is_steady {
        return None;
    }
    let at = |window: usize, stack: usize| windows.get(window).and_then(|w| w.get(stack)).copied().unwrap_or(0);
    let last = windows.len() - 1;
    let rises = |stack: &usize| (SETTLED..last).all(|window| at(window, *stack) < at(window + 1, *stack));
    (0..live.len())
        .filter(rises)
        .map(|stack| Growth { stack: StackId(stack as u32), from: at(SETTLED, stack), to: at(last, stack) })
        .max_by_key(|growth| growth.to - growth.from)
        .filter(|growth| growth.to - growth.from >= peak_bytes / SHARE)
}
