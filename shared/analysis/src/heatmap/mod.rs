//! Heatmaps of fragmentation: where free memory lies over time, and what it could serve.
//!
//! ```text
//! Replay::follow ─► sweep ─► columns of cells ─► bands (kept) ─► codes ─► the page's picture
//!                     ├ address: rows of addresses, packed        cells: the largest share of each use
//!                     └ sizes: rows of request sizes              the most and the least free bytes
//! ```
//! # What a cell stands for
//! A cell covers the positions whose states are current somewhere in its column (see [`crate::lod::spans`]), and for
//! each use of memory it has the *largest* share over them. So a gap that lasts for one event is in the cell at every
//! zoom; it is never averaged away. [`Tone`] says what is drawn where uses exclude each other.
//!
//! # Which gaps are usable
//! See [`requests`].
//!
//! # Cost
//! One pass over the events of the columns that no earlier picture had. A change costs as many steps as the rows that it
//! overlaps, a column without events as many as there are rows.

mod address;
mod bands;
mod cells;
mod map;
mod packing;
pub mod requests;
mod sizes;
mod sweep;

pub use address::{Division, Scene, is_waiting_at};
pub use bands::Columns;
pub use cells::{Peaks, Shares, Tone, Use};
pub use map::{AddressMap, SizeMap, Timed, extremes, peaks};
pub use packing::{Extent, Packing, is_of, is_of_pool};
pub use requests::{PoolKind, Requests};
pub use sizes::{Extremes, Free, class_of, classes, size_of_class};
