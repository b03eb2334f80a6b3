#![doc = include_str!("../README.md")]
//!
//! # Glossary
//! Each word has one meaning in the whole program. Memory, as PyTorch's caching allocator names it:
//! - *segment*: a range of device memory taken from the driver ([`trace::Segment`]). *Reserved* bytes are those of all
//!   segments. (A part of the server's log is a *log segment*.)
//! - *block*: a part of a segment. Its *size* is the *requested* size, rounded up; the difference is *rounding*.
//! - *allocation*: the use of a block from `alloc` to `free_completed` ([`replay::Allocation`]).
//! - *allocated*: in use by a live tensor. *Pending*: freed, and waiting for a stream. *Active*: allocated or pending.
//! - *cached*: reserved and not active. A maximal cached range is a *gap* ([`replay::Gap`]); many gaps are
//!   *fragmentation*.
//! - *call site*: the stack that requested an allocation. A *frame* is one line of a stack ([`frames::Frame`]).
//!
//! Time:
//! - *event*: one event of the allocator ([`trace::Event`]); a *trace* is the sequence of a device's events.
//! - *position* `p` of a trace of `n` events: the point after its first `p` events; `0` is the start, `n` the end.
//! - *state*: the allocator's segments and active blocks at a position ([`replay::AllocatorState`]). *Totals* are the
//!   sums over it ([`totals::Totals`]).
//! - *replay*: deriving states from a trace. (Running a script of operations is *script execution*.)
//! - *loss*, *lost events*: events that are missing from a trace ([`trace::Loss`]).
//! - *peak*: the position of the largest total, or that total.
//!
//! Data:
//! - *recording*: a `.vramscope` file or stream, and what was read of it ([`recording::Recording`]). It consists of
//!   *chunks*; a *batch* is the chunks that a collector sends and the server acknowledges together.
//! - *message*: one unit of the protocol between collector, server and page ([`wire::Message`]). Batches that a viewer
//!   does not get are *skipped* ([`wire::Skipped`]).
//! - *session*: an open file or running job ([`session::Session`]); on the server, one recorded job. Whether it runs,
//!   has ended or was lost is its [`wire::SessionState`].
//! - *index*: what is computed from a trace once, extended by later events ([`index::Index`]), and
//!   trimmed from the front by a copy ([`index::TrimmedCopy`]).
//! - *finding*: a problem or notable fact of a file or job ([`finding::Finding`]). The *diagnosis* of a device is its
//!   findings with the *verdict*: why memory ran out ([`diagnosis::Diagnosis`]).
#![forbid(unsafe_code)]

pub mod allocator;
pub mod analysis;
mod baked;
pub mod budget;
pub mod category;
mod checksum;
pub mod decimal;
pub mod diagnosis;
pub mod doctor;
pub mod error;
pub mod event;
pub mod export;
pub mod finding;
pub mod format;
pub mod frames;
pub mod heatmap;
pub mod import;
pub mod index;
pub mod limits;
pub mod link;
pub mod lod;
pub mod measures;
pub mod monitor;
mod msgpack;
pub mod numbered;
pub mod order;
mod pickle;
pub mod preview;
pub mod query;
pub mod recording;
pub mod redaction;
pub mod replay;
pub mod report;
pub mod session;
pub mod setting;
pub mod sweep;
#[cfg(test)]
mod testing;
pub mod text;
pub mod totals;
pub mod trace;
pub mod tracker;
pub mod units;
mod values;
pub mod whatif;
pub mod wire;
