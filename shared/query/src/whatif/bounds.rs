//! The least memory that any settings of an allocator need.

use serde::{Deserialize, Serialize};

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
