//! The number of the calling thread's Python stack.
//!
//! As in PyTorch, the stack is gathered before the allocator's lock is taken, and with the GIL: PyTorch's operators
//! release the GIL before they allocate. A thread that Python does not know (autograd's worker threads) has no Python
//! frames and does not wait for the GIL: its stack is unknown.

mod api;
mod walk;

pub(super) use walk::stack;
