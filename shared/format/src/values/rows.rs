//! Lists of trace entries.

use super::builder::SnapshotBuilder;
use super::value::{Kind, Value};
use trace::error::Checked;
use trace::narrow::number32;

/// A list of trace entries: runs of rows, `start..end`.
pub(crate) type Rows = Vec<(u32, u32)>;

impl SnapshotBuilder {
    /// Returns the rows of trace entries, if all items are entries of successive rows.
    pub(super) fn new_rows(&self, items: &[Value]) -> Option<(u32, u32)> {
        let Value::Event(first) = self.look(*items.first()?) else { return None };
        let is_at = |item: &Value, row: u32| match *item {
            Value::Node(id) => self.kind(id) == Kind::Event(row),
            _ => false,
        };
        let is_whole = items.iter().zip(first..).all(|(item, row)| is_at(item, row));
        is_whole.then(|| (first, first + number32(items.len())))
    }

    /// Appends successive rows to a list that is empty or holds rows.
    pub(super) fn append_rows(&mut self, id: u32, kind: Kind, (start, end): (u32, u32)) {
        let Kind::Events(number) = kind else {
            self.set_kind(id, Kind::Events(number32(self.lists.len())));
            self.lists.push(vec![(start, end)]);
            return;
        };
        let Some(rows) = self.lists.get_mut(number as usize) else { return };
        match rows.last_mut() {
            Some((_, last)) if *last == start => *last = end,
            _ => rows.push((start, end)),
        }
    }

    /// Appends trace entries to a list of rows. Other items are counted.
    pub(super) fn append_events(&mut self, number: u32, items: &[Value]) -> Checked {
        let mut malformed = 0;
        for &item in items {
            let Value::Event(row) = self.look(item) else {
                malformed += 1;
                continue;
            };
            let Some(rows) = self.lists.get_mut(number as usize) else { continue };
            match rows.last_mut() {
                Some((_, end)) if *end == row => *end += 1,
                _ => rows.push((row, row + 1)),
            }
        }
        self.malformed += malformed;
        Ok(())
    }
}
