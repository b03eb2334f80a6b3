//! The line that represents each stack.

use super::LeakSource;
use super::purpose::is_cache;
use crate::category::CUBLAS_WORKSPACES;
use crate::site::frame_label;
use query::folding::is_python;
use replay::Allocation;
use rustc_hash::FxHashMap;
use trace::frames::{FrameId, StackId};

/// The line of Python that represents each stack, found when it is first asked for. A C++ function would represent many
/// lines of a program.
pub(super) struct Lines<'a> {
    pub(super) source: LeakSource<'a>,
    of_stack: Vec<Option<Option<FrameId>>>,
    /// How many allocations of a workspace's size each line has made that stay.
    workspaces: Option<FxHashMap<(FrameId, u64), u32>>,
}

impl<'a> Lines<'a> {
    pub(super) const fn new(source: LeakSource<'a>) -> Self {
        Self { source, of_stack: Vec::new(), workspaces: None }
    }

    pub(super) fn of(&mut self, stack: StackId) -> Option<FrameId> {
        let LeakSource { symbols, best_frames, .. } = self.source;
        let i = stack.0 as usize;
        if self.of_stack.len() <= i {
            self.of_stack.resize(i + 1, None);
        }
        let known = self.of_stack.get_mut(i)?;
        *known.get_or_insert_with(|| {
            let frame = best_frames.frame(symbols.stack(stack))?;
            is_python(&symbols.text(symbols.frame(frame).filename)).then_some(frame)
        })
    }

    /// Returns whether the name of a line says that it fills a cache.
    pub(super) fn is_cache(&self, line: FrameId) -> bool {
        let symbols = self.source.symbols;
        is_cache(&frame_label(symbols, symbols.frame(line)))
    }

    /// Returns whether an allocation is a workspace of cuBLAS or cuBLASLt, which stays with whichever line multiplies first: it has
    /// that size, and its line keeps no more than two.
    pub(super) fn is_workspace(&mut self, allocation: &Allocation) -> bool {
        // A workspace is never freed. What leaked until a request failed may be.
        if allocation.end != Allocation::NEVER || !CUBLAS_WORKSPACES.contains(&allocation.requested) {
            return false;
        }
        let counts = match self.workspaces.take() {
            Some(counts) => counts,
            None => self.count_workspaces(),
        };
        let line = self.of(allocation.stack);
        let is_few = line.and_then(|line| counts.get(&(line, allocation.requested))).is_none_or(|count| *count <= 2);
        self.workspaces = Some(counts);
        is_few
    }

    fn count_workspaces(&mut self) -> FxHashMap<(FrameId, u64), u32> {
        let allocations = &self.source.replay.allocations;
        let mut counts = FxHashMap::default();
        let (stacks, ends) = (&mut allocations.stack.reader(), &mut allocations.end.reader());
        for (number, bytes) in (0_usize..).zip(allocations.requested.iter()) {
            let is_kept = CUBLAS_WORKSPACES.contains(&bytes) && ends.get(number) == Some(Allocation::NEVER);
            if is_kept && let Some(line) = self.of(StackId(stacks.get(number).unwrap_or(0))) {
                *counts.entry((line, bytes)).or_default() += 1;
            }
        }
        counts
    }
}
