//! Explains texts that people paste instead of a trace: errors that mean that memory ran out, and the output of
//! `torch.cuda.memory_stats()` and `torch.cuda.memory_summary()`.
//!
//! They hold sums at one moment. The explanation marks as likely what only a trace can prove (which line, whether the
//! free memory is in pieces), and ends with what to record.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod backend;
mod contradiction;
mod explanation;
mod layout;
mod message;
mod nvidia_smi;
mod other_errors;
mod server;
mod size;
mod stats;
mod summary;
mod traceback;
mod training_logs;
mod vllm;
mod xid;

pub use explanation::{Explanation, Fact, TextKind, shown, text_of};

use trace::limits::PASTED_BYTES;

/// What to paste instead, for a text that [`explain`] does not recognize.
pub const WANTED: &str = "Paste the whole message that begins \"CUDA out of memory. Tried to allocate\" or the output of \
                          torch.cuda.memory_summary() or memory_stats(), or give a memory snapshot or a recording.";

/// Returns the explanations of a text: one for each out-of-memory error in it, in order, or that of statistics. None if it is
/// neither, or longer than [`PASTED_BYTES`].
pub fn explain(text: &str) -> Vec<Explanation> {
    if text.len() > PASTED_BYTES {
        return Vec::new();
    }
    // Apple's error has the same words, and other figures.
    if let Some(found) = other_errors::metal(&layout::joined(text, false)) {
        return vec![Explanation { line: traceback::line(text), ..found }];
    }
    let mut found: Vec<Explanation> = message::read(text)
        .into_iter()
        .map(message::Message::explain)
        .map(|found| server::advise(text, found))
        .collect();
    // The last traceback belongs to the last error.
    if let Some(last) = found.last_mut() {
        last.line = traceback::line(text);
        return found;
    }
    let table = nvidia_smi::explain(text);
    if !table.is_empty() {
        return table;
    }
    let plain = layout::joined(text, false);
    let error = || vllm::explain(&plain).or_else(|| other_errors::explain(&plain)).or_else(|| xid::explain(&plain));
    let error = || error().map(|error| Explanation { line: traceback::line(text), ..error });
    let sums = |sums: Option<stats::Sums>, kind| sums.map(|sums| sums.explain(kind));
    let one = sums(summary::read(text), TextKind::MemorySummary)
        .or_else(|| sums(stats::read(text), TextKind::MemoryStats))
        .or_else(error)
        .or_else(|| sums(training_logs::read(text), TextKind::TrainingLog));
    one.into_iter().collect()
}

#[cfg(test)]
mod tests;
