//! The least memory that any settings of an allocator need.

use allocator::rounding::MIN_BLOCK;
use query::whatif::Bounds;

use super::requests::{Act, Requests};

impl Requests {
    /// Returns the least memory that the run needs, whatever the settings.
    pub fn bounds(&self) -> Bounds {
        let size = |number: u32| {
            let size = self.asked.get(number as usize).map_or(0, |asked| asked.size);
            (size, size.max(1).div_ceil(MIN_BLOCK).saturating_mul(MIN_BLOCK))
        };
        // A block that waits for a stream can be had earlier by waiting for it, so it is not counted.
        let allocated = self.live.iter().filter(|live| !live.is_waiting).map(|live| size(live.number));
        let (mut requested, mut rounded) = allocated.fold((0_u64, 0_u64), plus);
        let mut bounds = Bounds { requested, exact_fit: rounded, event: 0, served: 0 };
        for step in &self.steps {
            match step.act {
                Act::Malloc(number) => {
                    (requested, rounded) = plus((requested, rounded), size(number));
                    bounds.requested = bounds.requested.max(requested);
                    if rounded > bounds.exact_fit {
                        (bounds.exact_fit, bounds.event) = (rounded, step.event);
                    }
                }
                Act::Free(number) | Act::FreeLater(number) => {
                    let (plain, whole) = size(number);
                    (requested, rounded) = (requested.saturating_sub(plain), rounded.saturating_sub(whole));
                }
                Act::Failed(number) => {
                    bounds.served = bounds.served.max(plus((requested, rounded), size(number)).1);
                }
                Act::Settled(_) | Act::EmptyCache | Act::EndPool(_) | Act::LeavePool(_) | Act::Begin => {}
            }
        }
        bounds.served = bounds.served.max(bounds.exact_fit);
        bounds
    }
}

fn plus(sum: (u64, u64), size: (u64, u64)) -> (u64, u64) {
    (sum.0.saturating_add(size.0), sum.1.saturating_add(size.1))
}
