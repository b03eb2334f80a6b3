//! The caching allocator, as `torch.cuda.memory.CUDAPluggableAllocator` calls it.
//!
//! PyTorch gets the addresses of these functions from `vramscope/_allocator.py`: two required ones (`entry`) and optional
//! ones (`hooks`, `pools`). The Python package itself reads statistics and snapshots (`report`).
//!
//! Functions that PyTorch calls where an exception may unwind are `extern "C-unwind"` and raise a C++ exception
//! ([`raise`]). All others print errors to standard error. None of them lets a panic unwind.
//!
//! Imports go one way: `start` and `report` → `devices`; `pools` → `hooks` → `entry` → `filter` and `python` →
//! `devices` → `recording`; `raise`, `filter` and `python` → `library`. `errors` imports no sibling.

mod devices;
mod entry;
mod errors;
mod filter;
mod hooks;
mod library;
mod pools;
mod python;
mod raise;
mod recording;
mod report;
mod start;

pub use entry::{vramscope_free, vramscope_malloc};
pub use filter::StdFunction;
pub use hooks::{
    vramscope_base_alloc, vramscope_init, vramscope_memory_fraction, vramscope_record_stream, vramscope_reset,
};
pub use pools::{vramscope_begin_allocate_to_pool, vramscope_end_allocate_to_pool, vramscope_release_pool};
pub use report::{
    vramscope_allocator_fraction, vramscope_allocator_reset_accumulated, vramscope_allocator_reset_peak,
    vramscope_allocator_set_history, vramscope_allocator_snapshot, vramscope_allocator_snapshot_free,
    vramscope_allocator_stats_json,
};
pub use start::{
    vramscope_allocator_raises_out_of_memory, vramscope_allocator_set_settings, vramscope_allocator_start,
    vramscope_allocator_stop_recording,
};
