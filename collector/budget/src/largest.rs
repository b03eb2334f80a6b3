//! The largest batch that fits into an amount of memory, by formula.

use serde::Serialize;

use super::model::Model;
use super::plan::Plan;

/// The most sequences of a batch.
pub const MOST_BATCH: u64 = 1 << 20;

/// The largest batch that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LargestBatch {
    /// Sequences; 0 if not even one fits.
    pub batch: u64,
    /// The peak with that many; with one if none fits.
    pub peak_bytes: u64,
}

/// Returns the largest batch whose planned peak is at most `bytes`. The peak grows with the batch, and so do the cached tokens.
pub fn largest_batch(model: &Model, bytes: u64) -> LargestBatch {
    let cached = |batch: u64| {
        let tokens = u128::from(model.kv_tokens) * u128::from(batch) / u128::from(model.batch.max(1));
        u64::try_from(tokens).unwrap_or(u64::MAX)
    };
    let peak = |batch: u64| Plan::new(&Model { batch, kv_tokens: cached(batch), ..*model }).peak_bytes;
    let (mut low, mut high) = (0, MOST_BATCH + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if peak(middle) <= bytes {
            low = middle;
        } else {
            high = middle;
        }
    }
    LargestBatch { batch: low, peak_bytes: peak(low.max(1)) }
}
