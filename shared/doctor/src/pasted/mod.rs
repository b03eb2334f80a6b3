//! Explains texts that people paste instead of a trace: PyTorch's out-of-memory error, and the output of
//! `torch.cuda.memory_stats()` and `torch.cuda.memory_summary()`.
//!
//! They hold sums at one moment. The explanation marks as likely what only a trace can prove (which line, whether the
//! free memory is in pieces), and ends with what to record.

mod explanation;
mod message;
mod size;
mod stats;
mod summary;
mod traceback;

pub use explanation::{Explanation, Fact, TextKind};

use trace::limits::PASTED_BYTES;

/// What to paste instead, for a text that [`explain`] does not recognize.
pub const WANTED: &str = "Paste the whole message that begins \"CUDA out of memory. Tried to allocate\" or the output of \
                          torch.cuda.memory_summary() or memory_stats(), or give a memory snapshot or a recording.";

/// Returns the explanation of a text; `None` if it is not such an error or output, or longer than [`PASTED_BYTES`].
pub fn explain(text: &str) -> Option<Explanation> {
    if text.len() > PASTED_BYTES {
        return None;
    }
    message::read(text)
        .map(|message| Explanation { line: traceback::line(text), ..message.explain() })
        .or_else(|| summary::read(text).map(|sums| sums.explain(TextKind::MemorySummary)))
        .or_else(|| stats::read(text).map(|sums| sums.explain(TextKind::MemoryStats)))
}

#[cfg(test)]
mod tests;
