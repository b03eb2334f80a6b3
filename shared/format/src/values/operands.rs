//! The operand stack: values that wait for their parents, and the marks between them.

use super::builder::SnapshotBuilder;
use super::value::{Kind, Value};
use trace::error::{Checked, damaged, too_much};
use trace::narrow::number32;
use trace::units::Count;

/// A stack of values with marks. A list or dict lies below the mark that its items follow.
#[derive(Debug, Default)]
pub(crate) struct Operands {
    values: Vec<Value>,
    marks: Vec<u32>,
    value_limit: usize,
    mark_limit: usize,
}

impl Operands {
    /// Creates an empty stack with limits.
    pub(crate) fn new(value_limit: usize, mark_limit: usize) -> Self {
        Self { value_limit: value_limit.min(u32::MAX as usize), mark_limit, ..Self::default() }
    }

    /// Pushes a value.
    #[inline]
    pub(crate) fn push(&mut self, value: Value) -> Checked {
        if self.values.len() >= self.value_limit {
            return Err(too_much(format!("more than {} values on the stack", Count(self.value_limit as u64))));
        }
        self.values.push(value);
        Ok(())
    }

    /// Returns the bytes of memory that it occupies.
    pub(crate) fn memory(&self) -> usize {
        self.values.capacity() * size_of::<Value>() + self.marks.capacity() * size_of::<u32>()
    }

    /// Returns whether this many more values and marks can be pushed.
    #[inline]
    pub(crate) fn has_room(&self, values: usize, marks: usize) -> bool {
        self.values.len() + values <= self.value_limit && self.marks.len() + marks <= self.mark_limit
    }

    /// Pops the top value, which must lie above the last mark.
    #[inline]
    pub(crate) fn pop(&mut self) -> Checked<Value> {
        if self.values.len() <= self.floor() {
            return Err(underflow());
        }
        self.values.pop().ok_or_else(underflow)
    }

    /// Returns the top value.
    #[inline]
    pub(crate) fn top(&self) -> Checked<Value> {
        match self.values.last() {
            Some(&value) if self.values.len() > self.floor() => Ok(value),
            _ => Err(underflow()),
        }
    }

    /// Returns the place of the last mark.
    #[inline]
    fn floor(&self) -> usize {
        self.marks.last().map_or(0, |&mark| mark as usize)
    }

    /// Pushes a mark.
    #[inline]
    pub(crate) fn mark(&mut self) -> Checked {
        if self.marks.len() >= self.mark_limit {
            return Err(too_much(format!(
                "lists and dicts are nested more than {} deep",
                Count(self.mark_limit as u64)
            )));
        }
        self.marks.push(number32(self.values.len()));
        Ok(())
    }

    /// Removes the last mark and returns its place.
    #[inline]
    pub(crate) fn unmark(&mut self) -> Checked<usize> {
        self.marks.pop().map(|mark| mark as usize).ok_or_else(|| damaged("it ends a list or dict that it never began"))
    }

    /// Pushes a mark that was just removed.
    #[cold]
    pub(crate) fn mark_again(&mut self, place: usize) {
        self.marks.push(number32(place));
    }

    /// Returns whether there is a mark.
    pub(crate) fn is_marked(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Returns the values from a place on.
    #[inline]
    pub(crate) fn above(&self, place: usize) -> &[Value] {
        self.values.get(place..).unwrap_or(&[])
    }

    /// Returns the value below a place.
    #[inline]
    pub(crate) fn below(&self, place: usize) -> Checked<Value> {
        match place.checked_sub(1).and_then(|i| self.values.get(i)) {
            Some(&value) if place > self.floor() => Ok(value),
            _ => Err(underflow()),
        }
    }

    /// Returns the number of values above the last mark.
    pub(crate) fn above_mark(&self) -> usize {
        self.values.len() - self.floor().min(self.values.len())
    }

    /// Removes everything from a place on.
    #[inline]
    pub(crate) fn cut(&mut self, place: usize) {
        self.values.truncate(place);
    }

    /// Returns the place of the last `count` values, which must lie above the last mark.
    #[inline]
    pub(crate) fn last(&self, count: usize) -> Checked<usize> {
        match self.values.len().checked_sub(count) {
            Some(place) if place >= self.floor() => Ok(place),
            _ => Err(underflow()),
        }
    }

    /// Closes everything that is open, as at the end of a complete file: lists get the items that are complete, the
    /// dict at the bottom its entries. Other unfinished dicts are left out, as half a trace entry or segment would be
    /// wrong. Returns the value at the bottom.
    pub(crate) fn close(mut self, builder: &mut SnapshotBuilder) -> Checked<Option<Value>> {
        let targets: Vec<usize> = self.marks.iter().filter_map(|&mark| (mark as usize).checked_sub(1)).collect();
        let is_kept = |&place: &usize| place == 0 || self.values.get(place).is_some_and(|&v| is_list(builder, v));
        let kept = targets.iter().take_while(|&place| is_kept(place)).count();
        if let Some(&dropped) = targets.get(kept) {
            self.values.truncate(dropped);
        }
        for &place in targets.iter().take(kept).rev() {
            self.fill(builder, place)?;
            self.values.truncate(place + 1);
        }
        self.fill(builder, 0)?;
        Ok(self.values.first().copied())
    }

    /// Fills the list or dict at a place with the values above it.
    fn fill(&mut self, builder: &mut SnapshotBuilder, place: usize) -> Checked {
        let Some((&target, _)) = self.values.get(place..).and_then(<[Value]>::split_first) else { return Ok(()) };
        if is_list(builder, target) {
            let items: Vec<Value> = self.above(place + 1).iter().copied().filter(|&v| is_whole(builder, v)).collect();
            return builder.append(target, &items);
        }
        let Value::Node(id) = target else { return Ok(()) };
        if !matches!(builder.kind(id), Kind::EmptyDict | Kind::Dict(_)) {
            return Ok(());
        }
        let mut pairs = Vec::new();
        let mut rest = self.above(place + 1).iter().copied().peekable();
        while let (Some(key @ Value::Str(_)), Some(value)) = (rest.next(), rest.next()) {
            pairs.extend([key, value]);
            // A value followed by something other than a key is a list that waits for this one item, which is itself a
            // list or else not complete.
            let mut list = value;
            while let Some(item) = rest.next_if(|next| !matches!(next, Value::Str(_))) {
                if !is_list(builder, list) || !is_list(builder, item) {
                    return builder.set_items(target, &pairs);
                }
                builder.append(list, &[item])?;
                list = item;
            }
        }
        builder.set_items(target, &pairs)
    }
}

fn is_list(builder: &SnapshotBuilder, value: Value) -> bool {
    let Value::Node(id) = value else { return false };
    matches!(builder.kind(id), Kind::EmptyList | Kind::Events(_) | Kind::List(_) | Kind::Stack(_))
}

/// Whether a list item was complete when the file ended: a dict without entries was just begun.
fn is_whole(builder: &SnapshotBuilder, value: Value) -> bool {
    !matches!(value, Value::Node(id) if builder.kind(id) == Kind::EmptyDict)
}

#[cold]
fn underflow() -> Box<trace::error::Fault> {
    damaged("it uses a value that is not there")
}
