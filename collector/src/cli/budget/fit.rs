//! Whether a planned model fits on a card, and the largest batch that does.

use budget::{LargestBatch, Model, Plan, largest_batch};
use serde::Serialize;
use trace::units::{Bytes, Count};
use whatif::Card;

/// How exact plans are, in percent (`collector/budget/TRUTH.md`).
pub(super) const EXACT_PERCENT: u64 = 3;

/// The planned model on a card.
#[derive(Serialize)]
pub(super) struct Fit {
    /// The card.
    pub(super) card: &'static str,
    /// The bytes that a process can have of it for its tensors.
    pub(super) usable_bytes: u64,
    /// Whether the planned peak is less.
    pub(super) fits: bool,
    /// Whether it is so close that the plan can't tell.
    pub(super) is_close: bool,
    /// The largest batch, without working memory and fragmentation.
    pub(super) largest: LargestBatch,
}

impl Fit {
    /// Plans a model on a card.
    pub(super) fn new(model: &Model, plan: &Plan, card: &'static Card) -> Self {
        let usable_bytes = card.usable();
        let largest = largest_batch(model, usable_bytes);
        let difference = plan.peak_bytes.abs_diff(usable_bytes);
        let is_close = difference <= usable_bytes / 100 * EXACT_PERCENT;
        Self { card: card.name, usable_bytes, fits: plan.peak_bytes <= usable_bytes, is_close, largest }
    }
}

impl std::fmt::Display for Fit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LargestBatch { batch, peak_bytes } = self.largest;
        let peak = Bytes(peak_bytes);
        match batch {
            0 => writeln!(f, "not even a batch of 1 fits: it needs {peak}"),
            batch => writeln!(f, "largest batch: {}, with {peak} at the peak", Count(batch)),
        }
    }
}
