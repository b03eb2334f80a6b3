//! The small chunks: marks, statistics, gaps, the end of a batch, and the end.

use super::varint::{Varints, fold, push};
use crate::event::Action;
use crate::frames::StrId;
use crate::import::error::{Checked, damaged};
use crate::msgpack::{MapReader, MapWriter};
use crate::trace::{Annotation, Sample, Stage};

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
        let mut message = MapWriter::map(4);
        message.signed("device", self.device);
        message.unsigned("from", self.from);
        message.unsigned("to", self.to);
        message.column("by_action", &counts);
        message.into_bytes()
    }

    pub(super) fn decode(payload: &[u8]) -> Checked<Self> {
        let mut gap = Self::default();
        MapReader::new(payload).map(&mut |key, values| {
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
    let mut message = MapWriter::map(2);
    message.signed("device", device);
    message.column("marks", &column);
    message.into_bytes()
}

/// A device and its marks, their names as numbers of the recording.
pub(super) fn decode_marks(payload: &[u8]) -> Checked<(i64, Vec<Annotation>)> {
    let (mut device, mut column) = (0, Varints::new(&[]));
    MapReader::new(payload).map(&mut |key, values| {
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

/// Samples of one device, in the order in which they were taken.
pub(super) fn encode_samples(device: i64, samples: &[Sample]) -> Vec<u8> {
    let (mut column, mut last) = (Vec::new(), Sample::default());
    for sample in samples {
        push(&mut column, fold(sample.time_us.wrapping_sub(last.time_us)));
        for (now, before) in sample.sums().into_iter().zip(last.sums()) {
            push(&mut column, fold(now.wrapping_sub(before) as i64));
        }
        last = *sample;
    }
    let mut message = MapWriter::map(2);
    message.signed("device", device);
    message.column("samples", &column);
    message.into_bytes()
}

/// A device and its samples.
pub(super) fn decode_samples(payload: &[u8]) -> Checked<(i64, Vec<Sample>)> {
    let (mut device, mut column) = (0, Varints::new(&[]));
    MapReader::new(payload).map(&mut |key, values| {
        match key {
            "device" => device = values.signed()?,
            "samples" => column = Varints::new(values.column()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let (mut samples, mut last) = (Vec::new(), Sample::default());
    while !column.is_empty() {
        let time_us = last.time_us.wrapping_add(column.signed()?);
        let mut sums = last.sums();
        for sum in &mut sums {
            *sum = sum.wrapping_add(column.signed()? as u64);
        }
        let [allocated, active, reserved] = sums;
        last = Sample { time_us, allocated, active, reserved };
        samples.push(last);
    }
    Ok((device, samples))
}

/// The end of a batch in a server's store: what stands between it and the one before it is this batch, whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchEnd {
    /// The batch's number.
    pub seq: u64,
    /// When the collector sent it, by its own clock, in microseconds since the epoch; 0 where that was not kept.
    pub sent_us: i64,
}

impl BatchEnd {
    /// The whole chunk.
    pub fn to_chunk(self) -> Vec<u8> {
        let mut message = MapWriter::map(2);
        message.unsigned("seq", self.seq);
        message.signed("sent_us", self.sent_us);
        super::chunk::seal_stored(super::Kind::Batch as u8, &message.into_bytes())
    }

    /// From such a chunk's payload; `None` for one that is none.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let (mut seq, mut sent_us) = (None, 0);
        let read = MapReader::new(payload).map(&mut |key, values| {
            match key {
                "seq" => seq = Some(values.unsigned()?),
                "sent_us" => sent_us = values.signed()?,
                _ => return Ok(false),
            }
            Ok(true)
        });
        read.ok().and(seq).map(|seq| Self { seq, sent_us })
    }
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
        let mut message = MapWriter::map(3);
        message.signed("time_us", self.time_us);
        message.unsigned("events", self.events);
        message.unsigned("lost", self.lost);
        message.into_bytes()
    }

    pub(super) fn decode(payload: &[u8]) -> Checked<Self> {
        let mut end = Self::default();
        MapReader::new(payload).map(&mut |key, values| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_ends_of_batches_come_out_as_they_went_in() {
        let sample = |time_us, allocated, active, reserved| Sample { time_us, allocated, active, reserved };
        let samples = [sample(5, 1 << 40, 7, u64::MAX), sample(3, 0, u64::MAX, 2), sample(3, 0, 0, 0)];
        for samples in [&samples[..], &samples[..1], &[]] {
            assert_eq!(decode_samples(&encode_samples(-3, samples)).unwrap(), (-3, samples.to_vec()));
        }
        let whole = encode_samples(0, &samples);
        assert!(decode_samples(&whole[..whole.len() - 1]).is_err());
        for (seq, sent_us) in [(0, 0), (1, 1_700_000_000_000_000), (u64::MAX, i64::MIN)] {
            let end = BatchEnd { seq, sent_us };
            assert_eq!(BatchEnd::decode(&end.to_chunk()[super::super::ENVELOPE_BYTES..]), Some(end));
        }
        assert_eq!(BatchEnd::decode(b""), None);
        // As it was before times were kept.
        assert_eq!(BatchEnd::decode(b"\x81\xa3seq\x07"), Some(BatchEnd { seq: 7, sent_us: 0 }));
    }
}
