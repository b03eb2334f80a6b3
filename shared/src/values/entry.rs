//! Trace entries: from the entries of a dict to a row of the columns.

use super::builder::{SnapshotBuilder, entries};
use super::keywords;
use super::value::{Kind, Value};
use crate::error::{Checked, too_much};
use crate::event::Action;
use crate::frames::{FrameId, StackId, StrId};
use crate::trace::{Event, Tag, TagId};
use crate::units::{Address, Count, Stream};

impl SnapshotBuilder {
    /// Appends the row that a dict's entries describe. Returns `None` without an action, as such an entry has no
    /// meaning.
    pub(super) fn entry(&mut self, pairs: &[Value]) -> Checked<Option<u32>> {
        let row = self.events.len();
        let limit = self.limits.items.min(Kind::MAX as usize);
        if row >= limit {
            return Err(too_much(format!("more than {} trace entries", Count(limit as u64))));
        }
        let blank =
            Event { action: Action::Other, address: Address(0), size: 0, time_us: 0, tag: TagId(0), stack: StackId(0) };
        let Some(event) = self.read_entry(blank, None, Tag::default(), pairs)? else { return Ok(None) };
        self.events.push(event);
        Ok(Some(row as u32))
    }

    /// Sets further keys of a row.
    pub(super) fn change_entry(&mut self, row: u32, pairs: &[Value]) -> Checked {
        let Some(before) = self.events.get(row as usize) else { return Ok(()) };
        let tag = self.tags.get(before.tag);
        let name = match before.action {
            Action::Other => tag.other_action,
            action => self.symbols.intern(action.name().as_bytes()),
        };
        if let Some(event) = self.read_entry(before, Some(name), tag, pairs)? {
            self.events.set(row as usize, event);
        }
        Ok(())
    }

    fn read_entry(
        &mut self,
        mut event: Event,
        mut action: Option<StrId>,
        mut tag: Tag,
        pairs: &[Value],
    ) -> Checked<Option<Event>> {
        let mut malformed = 0;
        let mut cpp_stack = StackId(0);
        for (key, value) in entries(pairs) {
            // Every key is optional, and values of the wrong type are left out.
            let understood = match key {
                keywords::ACTION => value.str().map(|name| action = Some(name)),
                keywords::ADDR | keywords::ADDRESS | keywords::DEVICE_FREE => {
                    value.address().map(|n| event.address = Address(n))
                }
                keywords::SIZE => value.size().map(|n| event.size = n),
                // Some writers store streams as unsigned numbers.
                keywords::STREAM => value.address().map(|n| tag.stream = Stream(n as i64)),
                keywords::TIME_US => value.int().map(|n| event.time_us = n),
                keywords::COMPILE_CONTEXT => value.str().map(|text| tag.compile_context = text),
                keywords::USER_METADATA => value.str().map(|text| tag.user_metadata = text),
                keywords::POOL_ID => self.pool(value).map(|pool| {
                    tag.pool = Some(pool);
                    self.drop_kept(value);
                }),
                keywords::FRAMES => {
                    event.stack = self.stack(value)?;
                    Some(())
                }
                keywords::CPP_FRAMES => {
                    cpp_stack = self.stack(value)?;
                    Some(())
                }
                _ => {
                    self.drop_kept(value);
                    Some(())
                }
            };
            malformed += u64::from(understood.is_none() && value != Value::None);
        }
        self.malformed += malformed;
        let Some(action) = action else {
            self.malformed += 1;
            return Ok(None);
        };
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
    fn tag(&mut self, tag: Tag) -> TagId {
        if self.last_tag.0 != tag {
            self.last_tag = (tag, self.tags.intern(tag));
        }
        self.last_tag.1
    }
}
