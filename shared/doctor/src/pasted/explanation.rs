//! The explanation of a pasted text.

use std::fmt;

use serde::Serialize;

use query::diagnosis::Cause;
use query::finding::Remedy;
use query::line_in_sentence;
use trace::units::Bytes;

/// The kind of a pasted text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    /// An out-of-memory error.
    OutOfMemory,
    /// `torch.cuda.memory_stats()`.
    MemoryStats,
    /// `torch.cuda.memory_summary()`.
    MemorySummary,
}

/// A sum that the text says, or that follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is.
    pub name: &'static str,
    /// Bytes.
    pub bytes: u64,
}

/// The explanation of a pasted text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What the text is.
    pub kind: TextKind,
    /// Whether it says that a request failed.
    pub is_failure: bool,
    /// The likely cause.
    pub cause: Cause,
    /// One sentence.
    pub sentence: String,
    /// The line that asked for the memory, if the text has a traceback: `forward  gpt/model.py:54`.
    pub line: Option<String>,
    /// The sums.
    pub facts: Vec<Fact>,
    /// What to try.
    pub remedies: Vec<Remedy>,
    /// How to find the line that is to blame.
    pub next: &'static str,
}

/// What to record next.
pub(super) const NEXT: &str = "The text doesn't show which lines hold the memory, or how it lies. To see both, call \
                               torch.cuda.memory._record_memory_history() at the start of the program and \
                               torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") where the error is caught, then \
                               run vramscope doctor snapshot.pickle.";

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.sentence)?;
        if let Some(line) = &self.line {
            writeln!(f, "  requested at {}", line_in_sentence(line))?;
        }
        for fact in &self.facts {
            writeln!(f, "  {:>10}  {}", Bytes(fact.bytes), fact.name)?;
        }
        for remedy in &self.remedies {
            writeln!(f, "  help: {}", remedy.text)?;
            if !remedy.copy.is_empty() {
                writeln!(f, "    {}", remedy.copy)?;
            }
        }
        writeln!(f, "  next: {}", self.next)
    }
}
