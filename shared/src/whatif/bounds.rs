//! The least memory that any settings of an allocator need.

use serde::{Deserialize, Serialize};

use super::requests::{Act, Requests};
use crate::allocator::rounding::MIN_BLOCK;

/// The least memory that a run needs, whatever the settings: no allocator can do with less, since so much was in live
/// tensors at one moment. All sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The most bytes that live tensors had asked for: memory without rounding, and without any fragmentation.
    pub requested: u64,
    /// The most bytes that live tensors took, if each tensor has a block of its own with a multiple of 512 bytes, as PyTorch's
    /// allocator makes them: a perfect fit, without any fragmentation.
    pub exact_fit: u64,
    /// The event at which `exact_fit` was reached; 0 if at the start.
    pub event: u32,
    /// As `exact_fit`, with each request that failed in the recording as if it had been served.
    pub served: u64,
}

impl Bounds {
    pub(super) fn of(requests: &Requests) -> Self {
        let size = |number: u32| {
            let size = requests.asked.get(number as usize).map_or(0, |asked| asked.size);
            (size, size.max(1).div_ceil(MIN_BLOCK).saturating_mul(MIN_BLOCK))
        };
        // A block that waits for a stream can be had earlier by waiting for it, so it is not counted.
        let allocated = requests.live.iter().filter(|live| !live.is_waiting).map(|live| size(live.number));
        let (mut requested, mut rounded) = allocated.fold((0_u64, 0_u64), plus);
        let mut bounds = Self { requested, exact_fit: rounded, event: 0, served: 0 };
        for step in &requests.steps {
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
                Act::Settled(_) | Act::EmptyCache | Act::EndPool(_) | Act::LeavePool(_) => {}
            }
        }
        bounds.served = bounds.served.max(bounds.exact_fit);
        bounds
    }
}

fn plus(sum: (u64, u64), size: (u64, u64)) -> (u64, u64) {
    (sum.0.saturating_add(size.0), sum.1.saturating_add(size.1))
}
