//! The number of events of each action, named as the file names it.

use std::borrow::Cow;

use replay::index::Index;
use trace::event::Action;
use trace::frames::Symbols;
use trace::order;
use trace::{DeviceTrace, Event, Snapshot, TagId, Tags};

/// Returns the name of an event's action as the file writes it.
pub fn written_name<'a>(event: &Event, tags: &Tags, symbols: &'a Symbols) -> Cow<'a, str> {
    match event.action {
        Action::Other => symbols.text(tags.get(event.tag).other_action),
        known => Cow::Borrowed(known.name()),
    }
}

/// Counts a device's events by action: known actions in the order of their codes, then all others by name.
pub fn count(trace: &DeviceTrace, snapshot: &Snapshot) -> Vec<(String, u32)> {
    let counts = Counts::build((trace, &snapshot.tags));
    counts.named(&snapshot.tags, &snapshot.symbols)
}

/// The number of events of each action.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    known: [u32; Action::ALL.len()],
    /// By tag: the events whose action this build does not know.
    others: Vec<u32>,
    /// The events of unknown actions whose tag does not exist.
    untagged: u32,
    counted: usize,
}

impl Index<(&DeviceTrace, &Tags)> for Counts {
    fn extend(&mut self, (trace, tags): (&DeviceTrace, &Tags)) {
        let events = &trace.events;
        let range = self.counted..events.len();
        for (i, code) in range.clone().zip(events.action.range(range.clone())) {
            match Action::from_code(code) {
                Action::Other => {
                    let tag = events.tag.get(i).unwrap_or_default() as usize;
                    if self.others.len() < tags.len() {
                        self.others.resize(tags.len(), 0);
                    }
                    *self.others.get_mut(tag).unwrap_or(&mut self.untagged) += 1;
                }
                action => self.known[action as usize] += 1,
            }
        }
        self.counted = range.end;
    }

    fn bytes(&self) -> usize {
        self.others.capacity() * size_of::<u32>()
    }
}

impl Counts {
    /// Returns the counts above 0 with their names.
    pub fn named(&self, tags: &Tags, symbols: &Symbols) -> Vec<(String, u32)> {
        // Several tags can hold the same name.
        let mut named: Vec<(String, u32)> = Vec::new();
        for (tag, count) in (0..).zip(&self.others).filter(|(_, count)| **count > 0) {
            named.push((symbols.text(tags.get(TagId(tag)).other_action).into_owned(), *count));
        }
        if self.untagged > 0 {
            named.push((String::new(), self.untagged));
        }
        order::merge(&mut named, |sum, count| *sum += count);
        let known = Action::ALL.into_iter().zip(self.known).filter(|(_, count)| *count > 0);
        known.map(|(action, count)| (action.name().to_owned(), count)).chain(named).collect()
    }
}
