//! The explanation of a pasted text.

use std::borrow::Cow;
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
    /// A line of DeepSpeed or Megatron about PyTorch's allocator.
    TrainingLog,
    /// The table of `nvidia-smi`.
    NvidiaSmi,
    /// The kernel's log of the driver.
    DriverLog,
}

/// A sum that the text says, or that follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is.
    pub name: Cow<'static, str>,
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
    /// The device that the error names: `GPU 1`.
    pub device: Option<String>,
    /// The rank that a launcher wrote before the error.
    pub rank: Option<u32>,
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
    /// How to find the line that is to blame; empty where that is not known.
    pub next: &'static str,
}

/// What to record next.
pub(super) const NEXT: &str = "The text doesn't show which lines hold the memory, or how it lies. To see both, call \
                               torch.cuda.memory._record_memory_history() at the start of the program and \
                               torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") where the error is caught, then \
                               run vramscope doctor snapshot.pickle, or open the file on the page.";

/// The same for a release that can't write snapshots.
pub(super) const NEXT_UP_TO_2_0: &str = "The text doesn't show which lines hold the memory, or how it lies, and releases up to 2.0 can't \
                                         tell: with a later one, call torch.cuda.memory._record_memory_history() at the start of the \
                                         program and torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") where the error is caught, \
                                         then run vramscope doctor snapshot.pickle, or open the file on the page.";

impl Explanation {
    /// Returns where it happened, as far as the text says: `GPU 1, rank 1`.
    pub fn place(&self) -> String {
        let rank = self.rank.map(|rank| format!("rank {rank}"));
        self.device.iter().cloned().chain(rank).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the explanations of one text as a text for people: each error with its place if there are several, the newest last.
pub fn text_of(explanations: &[Explanation]) -> String {
    let Some((last, earlier)) = shown(explanations).split_last() else { return String::new() };
    let mut out = String::new();
    if !earlier.is_empty() && last.is_failure {
        out.push_str(&format!("{} errors:\n\n", explanations.len()));
    }
    for explanation in earlier {
        out.push_str(&format!("{}{explanation}\n", heading(explanation)));
    }
    let place = if earlier.is_empty() { String::new() } else { heading(last) };
    // What to record is the same for all.
    let next = if last.next.is_empty() { String::new() } else { format!("  next: {}\n", last.next) };
    out + &format!("{place}{last}{next}")
}

/// Returns those of one text that are shown: the last ones.
pub fn shown(explanations: &[Explanation]) -> &[Explanation] {
    explanations.get(explanations.len().saturating_sub(SHOWN)..).unwrap_or_default()
}

/// The most errors of one text that are shown, the last ones.
const SHOWN: usize = 16;

fn heading(explanation: &Explanation) -> String {
    let place = explanation.place();
    if place.is_empty() { String::new() } else { format!("On {place}:\n") }
}

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
        Ok(())
    }
}
