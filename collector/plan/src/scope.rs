//! The calls that one source line makes in the forward pass: what can be checkpointed or offloaded as a unit.

use replay::Replayed;
use trace::frames::FrameId;
use whatif::Edit;

use crate::call::Call;

/// What a line calls, as far as its frames tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// Layers of the library `transformers`, which checkpoints them by itself.
    Transformers,
    /// The modules of an `nn.Sequential`, one after the other.
    Sequential,
    /// A module of a class.
    Class(String),
    /// The `forward` of some module.
    Module,
    /// A function.
    Function(String),
}

/// The calls of one line, by forward pass.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The line.
    pub(crate) frame: FrameId,
    /// The line as people read it, such as `models/gpt.py:192`.
    pub(crate) place: String,
    pub(crate) callee: Callee,
    /// By forward pass, the calls that keep something for the backward pass.
    pub(crate) passes: Vec<Vec<Call>>,
    /// Whether the line called other lines of the program, and not one alone.
    pub(crate) has_several_lines: bool,
}

impl Scope {
    /// Returns the most calls in one forward pass.
    pub(crate) fn calls(&self) -> u32 {
        self.passes.iter().map(Vec::len).max().unwrap_or_default() as u32
    }

    /// Whether the backward pass of all calls is in the trace.
    pub(crate) fn is_whole(&self) -> bool {
        self.passes.iter().flatten().all(Call::is_whole)
    }

    /// Returns the bytes that the calls of one pass kept for the backward pass, at most.
    pub(crate) fn saved_bytes(&self, input: Replayed<'_>) -> u64 {
        let of = |calls: &Vec<Call>| calls.iter().map(|call| call.saved_bytes(input)).fold(0, u64::saturating_add);
        self.passes.iter().map(of).max().unwrap_or_default()
    }

    /// Returns about what checkpointing it can save at most: one call is recomputed at a time. `all` is what the whole forward pass
    /// keeps: recomputing most of it in one call saves nothing.
    pub(crate) fn potential(&self, input: Replayed<'_>, all: u64) -> u64 {
        let saved = self.saved_bytes(input);
        let largest = self.passes.iter().flatten().map(|call| call.saved_bytes(input)).max().unwrap_or_default();
        match self.calls() {
            0 => 0,
            1 if saved > all / 2 => 0,
            1 => saved,
            _ => saved.saturating_sub(largest),
        }
    }

    /// Returns the first calls of each pass, each with the one after it if that is among them.
    fn first(&self, calls: u32) -> impl Iterator<Item = (&Call, Option<&Call>)> {
        self.passes.iter().flat_map(move |pass| first(pass, calls))
    }

    /// Returns the edits that checkpoint the first calls of each pass.
    pub(crate) fn checkpoint(&self, input: Replayed<'_>, calls: u32) -> Vec<Edit> {
        let mut edits = Vec::new();
        self.first(calls).for_each(|(call, next)| call.checkpoint(input, next, &mut edits));
        edits
    }

    /// Returns the edits that offload what the first calls of each pass kept.
    pub(crate) fn offload(&self, input: Replayed<'_>, calls: u32) -> Vec<Edit> {
        let mut edits = Vec::new();
        self.first(calls).for_each(|(call, next)| call.offload(input, next, &mut edits));
        edits
    }

    /// Returns the bytes that the first calls of each pass made, in all passes.
    pub(crate) fn made_bytes(&self, input: Replayed<'_>, calls: u32) -> u64 {
        self.first(calls).map(|(call, _)| call.made_bytes(input)).fold(0, u64::saturating_add)
    }

    /// Returns the bytes that offloading the first calls moves out in one pass, at most.
    pub(crate) fn moved_bytes(&self, input: Replayed<'_>, calls: u32) -> u64 {
        let of = |pass: &Vec<Call>| {
            first(pass, calls).map(|(call, next)| call.moved_bytes(input, next)).fold(0, u64::saturating_add)
        };
        self.passes.iter().map(of).max().unwrap_or_default()
    }
}

/// Returns the first calls of a pass, each with the one after it if that is among them.
fn first(pass: &[Call], calls: u32) -> impl Iterator<Item = (&Call, Option<&Call>)> {
    let first = pass.get(..(calls as usize).min(pass.len())).unwrap_or_default();
    first.iter().zip(first.iter().skip(1).map(Some).chain([None]))
}
