//! The Python stack of the calling thread, numbered.
//!
//! It is gathered before the allocator's lock is taken, as PyTorch does, and like there the interpreter's lock is taken
//! for it: PyTorch's operators give it up before they allocate. A thread that Python does not know (autograd's worker
//! threads) has no Python frames, and is not made to wait: its stack reads as not known.

mod api;
mod walk;

pub(super) use walk::stack;
