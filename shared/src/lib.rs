//! The pure core of Vramscope: everything that the collector, the server and the page must agree on.
//!
//! Nothing here reads a clock, a file, a socket or a canvas, starts a thread, or panics on input. The same code
//! runs in the browser's worker, behind the command line and under the fuzzer.
//!
//! Words, as PyTorch's caching allocator uses them:
//! - *segment*: a range of device memory taken from the driver; *reserved* bytes are the sum of all segments.
//! - *block*: a piece of a segment. Its *size* is rounded up from the *requested* size; the difference is *rounding*.
//! - *allocated*: in a live tensor. *Active*: allocated, or freed and still waiting for a stream (*pending*).
//! - *inactive* or *cached*: reserved, and in no active block. A maximal inactive range is a *gap*.
//! - *call site*: the stack that asked for an allocation.
//! - *position* `p` of a trace of `n` events: the state after its first `p` events; `0` is the start, `n` the end.
#![forbid(unsafe_code)]

pub mod allocator;
pub mod analysis;
pub mod budget;
mod checksum;
pub mod decimal;
pub mod event;
pub mod export;
pub mod finding;
pub mod format;
pub mod frames;
pub mod import;
pub mod index;
pub mod limits;
pub mod link;
pub mod lod;
mod msgpack;
pub mod numbered;
pub mod order;
mod pickle;
pub mod query;
pub mod replay;
pub mod session;
#[cfg(test)]
mod testing;
pub mod totals;
pub mod trace;
pub mod units;
pub mod wire;
