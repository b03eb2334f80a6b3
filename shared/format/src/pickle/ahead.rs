//! The parts of a pickle that the machine recognizes ahead: whole trace entries, and lists of frames.

use super::entries::{MOST_MADE, MOST_MARKS, MOST_OPERANDS, Source};
use super::machine::Machine;
use super::opcode as op;
use super::runs::Ahead;
use crate::values::{Kind, Value};
use trace::error::Checked;

impl Machine {
    /// Reads trace entries, one after the other, as long as each can be read in one go. The first one's dict was begun
    /// right before `ahead`. Returns the length of what was read, or 0.
    #[inline(never)]
    pub(super) fn whole_entries(&mut self, ahead: &[u8]) -> Checked<usize> {
        let mut length = 0;
        // No entry overwrites a slot or changes a frame.
        self.forget_overwritten();
        let Self { builder, operands, memo, runs, entries, .. } = self;
        loop {
            if !builder.has_room(MOST_MADE) || !operands.has_room(MOST_OPERANDS, MOST_MARKS) {
                return Ok(length);
            }
            let rest = match length {
                0 => Some(ahead),
                _ => ahead.get(length..).and_then(|rest| rest.strip_prefix(&[op::EMPTY_DICT])),
            };
            let Some(rest) = rest else { return Ok(length) };
            let Some(slot) = memo.next(MOST_MADE, builder.limits.items) else { return Ok(length) };
            let Some((event, read)) = entries.read(rest, &mut Source { memo, builder, runs, slot }) else {
                return Ok(length);
            };
            // There is room for all of it: that was checked above.
            builder.events.push(event);
            builder.push_nodes(entries.made.nodes.as_slice());
            memo.push_words(entries.made.slots.as_slice());
            operands.push(Value::Node(entries.made.first_node))?;
            length = ahead.len() - rest.len() + read;
        }
    }

    /// Forgets what memo reads stand for, if a slot was overwritten or a frame changed.
    #[inline]
    fn forget_overwritten(&mut self) {
        if self.memo.overwritten || self.frame_changes != self.builder.frame_changes {
            self.memo.overwritten = false;
            self.frame_changes = self.builder.frame_changes;
            self.runs.clear();
            self.entries.clear();
        }
    }

    /// Reads a list of frames whose bytes were read before, if the bytes after a mark are one. Returns its length, or
    /// 0.
    #[inline]
    pub(super) fn known_frames(&mut self, ahead: &[u8]) -> Checked<usize> {
        if !matches!(ahead.first(), Some(&(op::BINGET | op::LONG_BINGET))) {
            return Ok(0);
        }
        let Ok(Value::Node(list)) = self.operands.top() else { return Ok(0) };
        if self.builder.kind(list) != Kind::EmptyList {
            return Ok(0);
        }
        self.forget_overwritten();
        match self.runs.look(ahead) {
            Ahead::Known(length, stack) => {
                self.builder.set_kind(list, Kind::Stack(stack));
                Ok(length)
            }
            Ahead::New(length) => self.new_frames(list, ahead.get(..length).unwrap_or(&[])),
            Ahead::Other => Ok(0),
        }
    }

    /// Reads a list that consists only of memo reads for the first time, and remembers it if it is a list of frames.
    fn new_frames(&mut self, list: u32, run: &[u8]) -> Checked<usize> {
        self.operands.mark()?;
        let mut rest = run;
        loop {
            rest = match *rest {
                [op::BINGET, slot, ref after @ ..] => {
                    self.operands.push(self.memo.get(usize::from(slot))?)?;
                    after
                }
                [op::LONG_BINGET, a, b, c, d, ref after @ ..] => {
                    self.operands.push(self.memo.get(u32::from_le_bytes([a, b, c, d]) as usize)?)?;
                    after
                }
                _ => break,
            };
        }
        self.unmarked(Self::append)?;
        if let Kind::Stack(stack) = self.builder.kind(list) {
            self.runs.add(run, stack);
        }
        Ok(run.len())
    }
}
