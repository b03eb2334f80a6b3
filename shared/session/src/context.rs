//! The data that answers are made from: one device's trace, indexes and names, borrowed together.

use analysis::actions::written_name;
use analysis::category::Categories;
use analysis::missing_stack::MissingStack;
use analysis::paint::Painter;
use analysis::site::{Sites, name_of};
use analysis::term_matches::Field;
use analysis::usage::Usage;
use format::Header;
use query::finding::Integrity;
use query::own_rules::UserRules;
use query::{ColorBy, DeviceSummary, EventRow, FrameText, MissingText};
use replay::{Replay, Replayed};
use trace::frames::{FrameId, StackId, Symbols};
use trace::{DeviceTrace, Snapshot};

/// One device of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    /// The file.
    pub(super) snapshot: &'a Snapshot,
    /// The device's trace.
    pub(super) trace: &'a DeviceTrace,
    /// The header of a recording.
    pub(super) header: Option<&'a Header>,
    /// Its replay.
    pub(super) replay: &'a Replay,
    /// Its memory use by call site.
    pub(super) usage: &'a Usage,
    /// Lines and colours of call sites.
    pub(super) sites: &'a Sites,
    /// Its summary.
    pub(super) summary: &'a DeviceSummary,
    /// What the file lacks.
    pub(super) integrity: Integrity,
    /// The categories of its allocations; `None` for a question that does not need them.
    pub(super) categories: Option<&'a Categories>,
    /// The user's own rules of categories.
    pub(super) category_rules: &'a UserRules,
}

impl<'a> Context<'a> {
    /// Returns the strings, frames and stacks.
    pub(super) fn symbols(&self) -> &'a Symbols {
        &self.snapshot.symbols
    }

    /// Returns the trace with its replay.
    pub(super) fn replayed(&self) -> Replayed<'a> {
        Replayed { trace: self.trace, tags: &self.snapshot.tags, replay: self.replay }
    }

    /// Returns where search terms are searched.
    pub(super) fn field(&self) -> Field<'a> {
        Field {
            symbols: &self.snapshot.symbols,
            tags: &self.snapshot.tags,
            replay: self.replay,
            categories: self.categories,
        }
    }

    /// Returns the colours of allocations.
    pub(super) fn painter(&self, color_by: ColorBy) -> Painter<'a> {
        Painter {
            color_by,
            trace: self.trace,
            replay: self.replay,
            tags: &self.snapshot.tags,
            sites: self.sites,
            streams: &self.summary.streams,
            categories: self.categories,
        }
    }

    /// Returns the time of a position, in microseconds since the trace begins.
    pub(super) fn time_us(&self, position: u32) -> f64 {
        self.replay.time_at(self.trace, position) as f64
    }

    /// Returns the frames of a stack as text, innermost first.
    pub(super) fn frames(&self, stack: StackId) -> Vec<FrameText> {
        let (symbols, best) = (self.symbols(), self.sites.best_frames());
        let ids = symbols.stack(stack);
        let call_site = best.index(ids);
        let text = |(index, id): (usize, &FrameId)| {
            let frame = symbols.frame(*id);
            FrameText {
                name: name_of(symbols, frame.name).into_owned(),
                filename: symbols.text(frame.filename).into_owned(),
                line: frame.line,
                library: best.library_name(best.library(*id)).to_owned(),
                is_call_site: Some(index) == call_site,
            }
        };
        ids.iter().enumerate().map(text).collect()
    }

    /// Returns the texts of why there is no stack.
    pub(super) fn missing_text(&self, why: MissingStack) -> MissingText {
        MissingText { reason: why.reason().to_owned(), remedy: why.remedy().to_owned() }
    }

    /// Returns the row of an event in the event list, if there is such an event.
    pub(super) fn event_row(&self, index: u32) -> Option<EventRow> {
        let event = self.trace.events.get(index as usize)?;
        let allocation = self.replay.event_allocation.get(index as usize).filter(|id| *id != Replay::NONE);
        // A free has the stack that freed, or none.
        let asked = allocation.and_then(|id| self.replay.allocations.stack.get(id as usize)).map(StackId);
        let shown = if event.stack.0 == 0 { asked.unwrap_or_default() } else { event.stack };
        Some(EventRow {
            index,
            time_us: self.time_us(index + 1),
            action: written_name(&event, &self.snapshot.tags, self.symbols()).into_owned(),
            address: event.address,
            size: event.size,
            stream: self.snapshot.tags.get(event.tag).stream,
            site: self.sites.label(shown).to_owned(),
            allocation,
            paint: self.sites.paint(shown),
        })
    }
}
