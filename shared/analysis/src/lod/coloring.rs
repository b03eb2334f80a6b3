//! A colouring of the timeline: the classes of a device's allocations, and their sums by bucket.

use super::classes::Classes;
use super::pyramid::Pyramid;
use crate::matches::Matches;
use crate::paint::Painter;
use crate::usage::Usage;
use replay::index::Index;

/// The classes of a colouring with their sums.
#[derive(Debug, Default)]
pub struct Coloring {
    /// The class of each allocation.
    pub classes: Classes,
    /// Their sums.
    pub pyramid: Pyramid,
    /// The position up to which the trace was swept; `None` before its start was.
    until: Option<u32>,
}

/// The input of a colouring.
#[derive(Clone, Copy, Debug)]
pub struct ColoringInput<'a> {
    /// The colours of allocations, with the trace and its replay.
    pub painter: &'a Painter<'a>,
    /// The memory use by call site.
    pub usage: &'a Usage,
    /// The allocations to include; `None` includes all.
    pub filter: Option<&'a Matches>,
    /// The allocations to highlight.
    pub highlight: Option<&'a Matches>,
    /// Whether `filter` and `highlight` match of the allocations added before what they matched then.
    pub is_permanent: bool,
}

impl Coloring {
    /// Returns whether the colouring includes all of `positions`.
    pub fn is_current(&self, positions: u32) -> bool {
        self.until == Some(positions)
    }
}

impl Index<ColoringInput<'_>> for Coloring {
    fn extend(&mut self, input: ColoringInput<'_>) {
        let ColoringInput { painter, usage, filter, highlight, is_permanent } = input;
        let positions = painter.replay.positions();
        if self.is_current(positions) {
            return;
        }
        let can_extend = self.until.is_some() && is_permanent;
        if !can_extend || !self.classes.extend(painter, usage, filter, highlight) {
            *self = Self { classes: Classes::build(painter, usage, filter, highlight), ..Self::default() };
        }
        self.pyramid.extend(painter.trace, painter.replay, &self.classes);
        self.until = Some(positions);
    }

    fn bytes(&self) -> usize {
        self.classes.class_of.capacity() + self.pyramid.bytes()
    }
}
