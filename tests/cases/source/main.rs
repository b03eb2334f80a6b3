//! The source itself: its layers, what the pure crates use, what the page says, and the files that the guides name.

mod guide;
mod layers;
mod purity;
mod strings;
