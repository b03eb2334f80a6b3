//! Trace entries: from the entries of a dict to a row of the columns.

use super::builder::{SnapshotBuilder, entries};
use super::keywords;
use super::value::{Kind, Value};
use trace::error::{Checked, too_much};
use trace::event::Action;
use trace::frames::{FrameId, StackId, StrId};
use trace::narrow::number32;
use trace::units::{Address, Count, Stream};
use trace::{Event, Marks, Tag, TagId};

/// What has been read of a trace entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryDraft {
    event: Event,
    action: Option<StrId>,
    pub(crate) tag: Tag,
    cpp_stack: StackId,
    marks: Marks,
}

/// Outcome of reading a key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drafted {
    /// It is set.
    Done,
    /// Its value has an unexpected type.
    Malformed,
    /// Its value may be kept in the arena.
    Kept,
}

impl Default for EntryDraft {
    fn default() -> Self {
        let event =
            Event { action: Action::Other, address: Address(0), size: 0, time_us: 0, tag: TagId(0), stack: StackId(0) };
        let marks = Marks { entries: true, ..Marks::default() };
        Self { event, action: None, tag: Tag::default(), cpp_stack: StackId(0), marks }
    }
}

impl EntryDraft {
    /// Returns whether it is an event as it stands, without stacks to be joined.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.action.is_some() && self.cpp_stack == StackId(0)
    }
}

impl Drafted {
    /// Returns whether the key is set.
    #[inline]
    pub(crate) fn is_done(self) -> bool {
        self == Self::Done
    }
}

impl SnapshotBuilder {
    /// Appends the row that a dict's entries describe. Returns `None` without an action, as such an entry has no
    /// meaning.
    pub(super) fn entry(&mut self, pairs: &[Value]) -> Checked<Option<u32>> {
        let row = self.events.len();
        let limit = self.limits.items.min(Kind::MAX as usize);
        if row >= limit {
            return Err(too_much(format!("more than {} trace entries", Count(limit as u64))));
        }
        let Some(event) = self.read_entry(EntryDraft::default(), pairs)? else { return Ok(None) };
        self.events.push(event);
        Ok(Some(number32(row)))
    }

    /// Sets further keys of a row.
    pub(super) fn change_entry(&mut self, row: u32, pairs: &[Value]) -> Checked {
        let Some(event) = self.events.get(row as usize) else { return Ok(()) };
        let tag = self.tags.get(event.tag);
        let action = match event.action {
            Action::Other => tag.other_action,
            action => self.symbols.intern(action.name().as_bytes()),
        };
        let before = EntryDraft { event, action: Some(action), tag, ..EntryDraft::default() };
        if let Some(event) = self.read_entry(before, pairs)? {
            self.events.set(row as usize, event);
        }
        Ok(())
    }

    fn read_entry(&mut self, mut draft: EntryDraft, pairs: &[Value]) -> Checked<Option<Event>> {
        for (key, value) in entries(pairs) {
            match self.draft(&mut draft, key, value) {
                Drafted::Done => {}
                Drafted::Malformed => self.malformed += 1,
                Drafted::Kept => self.draft_kept(&mut draft, key, value)?,
            }
        }
        self.finish_draft(draft)
    }

    /// Sets a key of an entry, if that needs no change to what is kept. Every key is optional, and values of the wrong
    /// type are left out.
    #[inline(always)]
    pub(crate) fn draft(&self, draft: &mut EntryDraft, key: StrId, value: Value) -> Drafted {
        let EntryDraft { event, action, tag, cpp_stack, marks } = draft;
        match key {
            keywords::COMPILE_CONTEXT => marks.compile_context = true,
            keywords::USER_METADATA => marks.user_metadata = true,
            keywords::POOL_ID => marks.pool_id = true,
            _ => {}
        }
        let understood = match key {
            keywords::ACTION => value.str().map(|name| *action = Some(name)),
            keywords::ADDR | keywords::ADDRESS | keywords::DEVICE_FREE => {
                value.address().map(|n| event.address = Address(n))
            }
            keywords::SIZE => value.size().map(|n| event.size = n),
            // Some writers store streams as unsigned numbers.
            keywords::STREAM => value.address().map(|n| tag.stream = Stream(n as i64)),
            keywords::TIME_US => value.int().map(|n| event.time_us = n),
            keywords::COMPILE_CONTEXT => value.str().map(|text| tag.compile_context = text),
            keywords::USER_METADATA => value.str().map(|text| tag.user_metadata = text),
            keywords::POOL_ID if !matches!(value, Value::Node(_)) => self.pool(value).map(|pool| tag.pool = Some(pool)),
            keywords::FRAMES | keywords::CPP_FRAMES => {
                let Some(stack) = self.known_stack(value) else { return Drafted::Kept };
                *(if key == keywords::FRAMES { &mut event.stack } else { cpp_stack }) = stack;
                Some(())
            }
            _ if matches!(value, Value::Node(_)) => return Drafted::Kept,
            _ => Some(()),
        };
        if understood.is_some() || value == Value::None { Drafted::Done } else { Drafted::Malformed }
    }

    /// Returns the stack that a value stands for, if it is a complete or an empty list.
    #[inline]
    pub(crate) fn known_stack(&self, value: Value) -> Option<StackId> {
        match self.look(value) {
            Value::Stack(stack) => Some(stack),
            Value::None => Some(StackId(0)),
            Value::Node(id) if self.kind(id) == Kind::EmptyList => Some(StackId(0)),
            _ => None,
        }
    }

    /// Sets a key whose value may be kept in the arena, and frees the value.
    fn draft_kept(&mut self, draft: &mut EntryDraft, key: StrId, value: Value) -> Checked {
        match key {
            keywords::POOL_ID => match self.pool(value) {
                Some(pool) => {
                    draft.tag.pool = Some(pool);
                    self.drop_kept(value);
                }
                None => self.malformed += 1,
            },
            keywords::FRAMES => draft.event.stack = self.stack(value)?,
            keywords::CPP_FRAMES => draft.cpp_stack = self.stack(value)?,
            _ => self.drop_kept(value),
        }
        Ok(())
    }

    /// Returns the event of a draft; `None` without an action.
    #[inline]
    pub(crate) fn finish_draft(&mut self, draft: EntryDraft) -> Checked<Option<Event>> {
        let EntryDraft { mut event, action, mut tag, cpp_stack, marks } = draft;
        let Some(action) = action else {
            self.malformed += 1;
            return Ok(None);
        };
        self.marks.add(marks);
        event.action = keywords::action(action);
        tag.other_action = if event.action == Action::Other { action } else { StrId(0) };
        if cpp_stack != StackId(0) {
            event.stack = self.joined(cpp_stack, event.stack)?;
        }
        event.tag = self.tag(tag);
        Ok(Some(event))
    }

    /// Returns the stack of C++ frames on top of Python's.
    pub(crate) fn joined(&mut self, inner: StackId, outer: StackId) -> Checked<StackId> {
        let frames: Vec<FrameId> = [inner, outer].iter().flat_map(|&s| self.symbols.stack(s)).copied().collect();
        let values: Vec<Value> = frames.into_iter().map(Value::Frame).collect();
        Ok(self.stack_of_frames(&values)?.unwrap_or_default())
    }

    /// Returns the number of a tag; neighbouring entries mostly share theirs.
    #[inline]
    pub(crate) fn tag(&mut self, tag: Tag) -> TagId {
        if self.last_tag.0 != tag {
            self.last_tag = (tag, self.tags.intern(tag));
        }
        self.last_tag.1
    }
}
