//! What all pictures over time share: gestures, axes, lanes, the cursor, and the marks of failures, peaks and limits.

pub mod curve;
pub mod cut;
pub mod double;
pub mod drag;
pub mod flags;
pub mod gesture;
pub mod lanes;
pub mod limit;
pub mod listen;
pub mod marked;
pub mod marks;
pub mod outline;
pub mod peak;
