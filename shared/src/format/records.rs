//! The small chunks: marks, gaps, and the end.

use super::message::{Message, Values};
use super::varint::{Varints, fold, push};
use crate::event::Action;
use crate::frames::StrId;
use crate::import::error::{Checked, damaged};
use crate::trace::{Annotation, Stage};

/// Events of one device that were lost: those with numbers from `from` to before `to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The device.
    pub device: i64,
    /// The first lost event's sequence number.
    pub from: u64,
    /// The sequence number of the next event that is there.
    pub to: u64,
    /// How many of each [`Action`], by its code; all zeros when nobody knows.
    pub by_action: [u64; Action::ALL.len()],
}

impl Gap {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut counts = Vec::new();
        for &count in &self.by_action {
            push(&mut counts, count);
        }
        let mut message = Message::map(4);
        message.signed("device", self.device);
        message.unsigned("from", self.from);
        message.unsigned("to", self.to);
        message.column("by_action", &counts);
        message.into_bytes()
    }

    pub(super) fn decode(payload: &[u8]) -> Checked<Self> {
        let mut gap = Self::default();
        Values::new(payload).map(&mut |key, values| {
            match key {
                "device" => gap.device = values.signed()?,
                "from" => gap.from = values.unsigned()?,
                "to" => gap.to = values.unsigned()?,
                "by_action" => {
                    let mut counts = Varints::new(values.column()?);
                    for slot in &mut gap.by_action {
                        if !counts.is_empty() {
                            *slot = counts.next()?;
                        }
                    }
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if gap.from > gap.to { Err(damaged("a gap ends before it begins")) } else { Ok(gap) }
    }
}

/// Marks of one device, in the order in which they were made.
pub(super) fn encode_marks(device: i64, marks: &[Annotation]) -> Vec<u8> {
    let (mut column, mut last) = (Vec::new(), 0);
    for mark in marks {
        push(&mut column, fold(mark.time_us.wrapping_sub(last)));
        push(&mut column, mark.name.0.into());
        push(&mut column, mark.stage as u64);
        last = mark.time_us;
    }
    let mut message = Message::map(2);
    message.signed("device", device);
    message.column("marks", &column);
    message.into_bytes()
}

/// A device and its marks, their names as numbers of the recording.
pub(super) fn decode_marks(payload: &[u8]) -> Checked<(i64, Vec<Annotation>)> {
    let (mut device, mut column) = (0, Varints::new(&[]));
    Values::new(payload).map(&mut |key, values| {
        match key {
            "device" => device = values.signed()?,
            "marks" => column = Varints::new(values.column()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let (mut marks, mut time_us) = (Vec::new(), 0_i64);
    while !column.is_empty() {
        time_us = time_us.wrapping_add(column.signed()?);
        let name = StrId(column.small()?);
        let stage = match column.next()? {
            0 => Stage::Start,
            1 => Stage::End,
            _ => Stage::Instant,
        };
        marks.push(Annotation { name, stage, time_us });
    }
    Ok((device, marks))
}

/// What is said when a recording ends as it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// When, in microseconds since the epoch.
    pub time_us: i64,
    /// Events that are in the file.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
}

impl End {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut message = Message::map(3);
        message.signed("time_us", self.time_us);
        message.unsigned("events", self.events);
        message.unsigned("lost", self.lost);
        message.into_bytes()
    }

    pub(super) fn decode(payload: &[u8]) -> Checked<Self> {
        let mut end = Self::default();
        Values::new(payload).map(&mut |key, values| {
            match key {
                "time_us" => end.time_us = values.signed()?,
                "events" => end.events = values.unsigned()?,
                "lost" => end.lost = values.unsigned()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(end)
    }
}
