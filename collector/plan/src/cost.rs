//! What a measure costs in each step.

use serde::Serialize;
use trace::units::Bytes;

/// The bytes that PCIe moves in a second, in one direction, from and to pinned memory: about what PCIe 4.0 with 16 lanes reaches.
pub const PCIE_BYTES_PER_SECOND: u64 = 25_000_000_000;

/// The parts of a step of which the forward pass is one: the backward pass takes about twice as long.
const FORWARD_PART: f64 = 3.0;

/// The microseconds of a step, if the recording doesn't tell: what costs are compared by.
const USUAL_STEP_US: f64 = 1_000_000.0;

/// What a measure costs in each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// The share of the forward pass that is done again, from 0 to 1, by the bytes that it asks for: an estimate of its time.
    pub recomputed_share: f64,
    /// The bytes that are moved to the host and back.
    pub moved_bytes: u64,
}

impl Cost {
    /// Returns the microseconds that moving takes, both ways, if nothing else runs meanwhile.
    pub fn moving_us(&self) -> u64 {
        let us = u128::from(self.moved_bytes) * 2 * 1_000_000 / u128::from(PCIE_BYTES_PER_SECOND);
        u64::try_from(us).unwrap_or(u64::MAX)
    }

    /// Returns the share of a step by which it gets longer, if the forward pass is a third of it.
    pub fn recomputed_part_of_step(&self) -> f64 {
        self.recomputed_share / FORWARD_PART
    }

    /// Returns about how many microseconds a step gets longer. `step_us` are those of a step, if the recording tells.
    pub(crate) fn us(&self, step_us: Option<u64>) -> f64 {
        let step = step_us.map_or(USUAL_STEP_US, |us| us as f64);
        step * self.recomputed_part_of_step() + self.moving_us() as f64
    }

    /// Returns it in words.
    pub fn words(&self) -> String {
        let percent = |share: f64| match share * 100.0 {
            percent if percent < 1.0 => "less than 1 %".to_owned(),
            percent => format!("about {percent:.0} %"),
        };
        if self.recomputed_share > 0.0 {
            let (again, longer) = (percent(self.recomputed_share), percent(self.recomputed_part_of_step()));
            return format!("does {again} of the forward pass again: {longer} longer steps");
        }
        if self.moved_bytes == 0 {
            return "nothing".to_owned();
        }
        let ms = self.moving_us().div_ceil(1_000);
        format!("moves {} out and back in each step: about {ms} ms", Bytes(self.moved_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_in_words() {
        let gb = 1_000_000_000;
        for (recomputed_share, moved_bytes, want) in [
            (0.9, 0, "does about 90 % of the forward pass again: about 30 % longer steps"),
            (0.0, 25 * gb, "moves 23.3 GiB out and back in each step: about 2000 ms"),
            (0.0, 0, "nothing"),
        ] {
            assert_eq!(Cost { recomputed_share, moved_bytes }.words(), want);
        }
        // Of equal savings, the one that takes less time is better.
        let (again, moved) =
            (Cost { recomputed_share: 0.3, ..Cost::default() }, Cost { moved_bytes: gb, ..Cost::default() });
        assert!(again.us(Some(500_000)) < moved.us(Some(500_000)) && again.us(None) > moved.us(None));
    }
}
