//! The line that represents each stack.

use super::LeakSource;
use super::purpose::is_cache;
use crate::site::frame_label;
use query::folding::is_python;
use trace::frames::{FrameId, StackId};

/// The line of Python that represents each stack, found when it is first asked for. A C++ function would represent many
/// lines of a program.
pub(super) struct Lines<'a> {
    pub(super) source: LeakSource<'a>,
    of_stack: Vec<Option<Option<FrameId>>>,
}

impl<'a> Lines<'a> {
    pub(super) const fn new(source: LeakSource<'a>) -> Self {
        Self { source, of_stack: Vec::new() }
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
}
