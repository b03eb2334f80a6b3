//! The most memory that was in use at once in a part of a trace.

use replay::{Change, Replayed};

/// The most memory that was in use at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPeak {
    /// Bytes that active allocations requested.
    pub bytes: u64,
    /// The first position that has them.
    pub position: u32,
}

impl PartPeak {
    /// Sweeps the part between two positions; both belong to it.
    pub fn of(Replayed { trace, replay, .. }: Replayed<'_>, from: u32, to: u32) -> Self {
        let requested = |id: u32| replay.allocations.requested.get(id as usize).unwrap_or(0);
        let mut now = replay.active_at(from).into_iter().fold(0_u64, |sum, id| sum.saturating_add(requested(id)));
        let mut peak = Self { bytes: now, position: from };
        let mut swept = from;
        // All changes of one position belong together.
        let mut reach = |position: u32, bytes: u64| {
            if bytes > peak.bytes {
                peak = Self { bytes, position };
            }
        };
        replay.changes(trace, from, to, |position, change| {
            if position != swept {
                reach(swept, now);
                swept = position;
            }
            match change {
                Change::Begin(id) => now = now.saturating_add(requested(id)),
                Change::End(id) => now = now.saturating_sub(requested(id)),
                Change::Freed(_) | Change::Reserved(_) => {}
            }
        });
        reach(swept, now);
        peak
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use replay::Replay;

    use super::*;

    proptest! {
        #[test]
        fn a_sweep_agrees_with_every_state(
            events in proptest::collection::vec((0_u64..12, 1_u64..9, any::<bool>()), 1..80),
            ends in (0_u32..90, 0_u32..90),
        ) {
            let mut lines = "segment_alloc 0x1000000 20971520".to_owned();
            let mut live = [false; 12];
            for (place, size, frees) in events {
                let address = 0x100_0000 + place * 0x10_0000;
                if std::mem::replace(&mut live[place as usize], true) {
                    live[place as usize] = false;
                    lines += &format!("\n{} {address}", if frees { "free" } else { "free_requested" });
                    continue;
                }
                lines += &format!("\nalloc {address} {}", size * 1_000);
            }
            let mut snapshot = trace::testing::snapshot(&lines);
            let trace = snapshot.devices.remove(0);
            let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
            let last = replay.positions();
            let (from, to) = (ends.0.min(ends.1).min(last), ends.0.max(ends.1).min(last));
            let peak = PartPeak::of(Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay }, from, to);
            let states = (from..=to).map(|position| (replay.state_at(position).totals.requested, position));
            // Of equal ones, the first.
            let most = states.reduce(|most, other| if other.0 > most.0 { other } else { most });
            prop_assert_eq!(Some((peak.bytes, peak.position)), most);
        }
    }
}
