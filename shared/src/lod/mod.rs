//! Level of detail: what lets ten million events be drawn from a few thousand numbers, without losing a peak.
//!
//! Positions are cut into buckets of [`BUCKET`]. Each bucket keeps the state's sums at its start and its largest total;
//! maxima are kept in levels above. A pixel column then asks for the instant of its largest total (whole buckets by
//! level, the two at its ends event by event), and for the composition at that instant (the bucket's start and at most
//! a bucket of events): its cost has a bound that no trace's length moves.

mod classes;
mod columns;
mod maxima;
mod pyramid;
pub mod sampled;
mod series;
mod stack;
mod strips;
mod timeline;
mod totals;

pub use classes::{Classes, EXCLUDED};
pub use columns::{Span, coordinate, extent, spans};
pub use maxima::Maxima;
pub use pyramid::Pyramid;
pub use series::Series;
pub use timeline::{Scene, timeline};
pub use totals::{RunningTotals, overview};

/// Positions in a bucket. A bucket costs some hundred bytes; walking one costs about a microsecond.
pub const BUCKET: u32 = 256;

/// The bucket of a position.
const fn bucket_of(position: u32) -> u32 {
    position / BUCKET
}
