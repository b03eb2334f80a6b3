//! Events counted and named by action, as the file writes it.

use std::borrow::Cow;

use crate::event::Action;
use crate::frames::Symbols;
use crate::order;
use crate::trace::{DeviceTrace, Event, Snapshot, TagId, Tags};
use crate::units::Count;

/// The action of an event as it is written.
pub fn written_name<'a>(event: &Event, tags: &Tags, symbols: &'a Symbols) -> Cow<'a, str> {
    match event.action {
        Action::Other => symbols.text(tags.get(event.tag).other_action),
        known => Cow::Borrowed(known.name()),
    }
}

/// Counts by [`Action`] as a sentence has them: `2 alloc, 1 oom`; empty when all are 0.
pub fn in_words(by_action: &[u64; Action::ALL.len()]) -> String {
    let mut words = String::new();
    for (action, count) in Action::ALL.iter().zip(by_action).filter(|(_, count)| **count > 0) {
        if !words.is_empty() {
            words.push_str(", ");
        }
        words.push_str(&Count(*count).to_string());
        words.push(' ');
        words.push_str(action.name());
    }
    words
}

/// How many events of each action a device has: known actions in the order of their codes, then all others by name.
pub fn count(trace: &DeviceTrace, snapshot: &Snapshot) -> Vec<(String, u32)> {
    let mut known = [0u32; Action::ALL.len()];
    // By tag; the last stands for tags that the file does not have.
    let mut others = vec![0u32; snapshot.tags.len() + 1];
    for (code, tag) in trace.events.action.iter().zip(trace.events.tag.iter()) {
        match Action::from_code(code) {
            Action::Other => {
                if let Some(count) = others.get_mut((tag as usize).min(snapshot.tags.len())) {
                    *count += 1;
                }
            }
            action => known[action as usize] += 1,
        }
    }
    // Several tags can hold the same name.
    let mut named: Vec<(String, u32)> = Vec::new();
    for (tag, count) in (0..).zip(others).filter(|(_, count)| *count > 0) {
        named.push((snapshot.symbols.text(snapshot.tags.get(TagId(tag)).other_action).into_owned(), count));
    }
    order::merge(&mut named, |sum, count| *sum += count);
    let known = Action::ALL.into_iter().zip(known).filter(|(_, count)| *count > 0);
    known.map(|(action, count)| (action.name().to_owned(), count)).chain(named).collect()
}
