//! Level of detail: draws ten million events from a few thousand numbers, without losing a peak.
//!
//! Positions are divided into buckets of [`BUCKET`]. Each bucket keeps the sums at its start and its largest total;
//! maxima are kept in levels above. For a pixel column, the position of its largest total is found (whole buckets by
//! level, the two at its ends event by event), and then the composition at that position (from the bucket's start, at
//! most a bucket of events). The cost of a column is bounded whatever the trace's length.
//!
//! What is done for each column, piece or place is a function that is not inlined. A browser compiles a function again, with
//! optimizations, once it has run often, which takes a thousand times as long as to run it: one that is short, and called again, is
//! soon fast, and one that has all loops of an answer is compiled in vain.

mod bucket_values;
mod classes;
mod coloring;
pub mod columns;
mod curves;
mod maxima;
mod outside;
mod pyramid;
pub mod sampled;
mod series;
mod stack;
mod strips;
mod timeline;
mod totals;

pub use classes::{Classes, EXCLUDED};
pub use coloring::{Coloring, ColoringInput};
pub use columns::{Span, coordinate, extent, spans};
pub use curves::RunningMeasures;
pub use pyramid::Pyramid;
pub use series::Series;
pub use timeline::{Scene, timeline};
pub use totals::{RunningTotals, overview};

/// The number of positions in a bucket. A bucket takes a few hundred bytes; walking one takes roughly a microsecond.
pub const BUCKET: u32 = 256;

/// Returns the bucket of a position.
const fn bucket_of(position: u32) -> u32 {
    position / BUCKET
}
