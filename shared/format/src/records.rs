//! The small chunks: lost events, marks, statistics, the end of a batch and the end of the recording.

use super::varint::{Varints, push, zigzag};
use codec::msgpack::{MapReader, MapWriter};
use trace::error::{Checked, damaged};
use trace::event::Action;
use trace::frames::StrId;
use trace::{Annotation, Sample, Stage};

/// A run of one device's events that was lost: sequence numbers `from..to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostEvents {
    /// The device.
    pub device: i64,
    /// The first lost event's sequence number.
    pub from: u64,
    /// The sequence number of the next event that was kept.
    pub to: u64,
    /// The number of events of each [`Action`], by its code; all zeros if unknown.
    pub by_action: [u64; Action::ALL.len()],
}

impl LostEvents {
    /// Returns the payload of a lost-events chunk.
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

    /// Reads the payload of a lost-events chunk.
    pub fn decode(payload: &[u8]) -> Checked<Self> {
        let mut lost = Self::default();
        MapReader::new(payload).map(&mut |key, values| {
            match key {
                "device" => lost.device = values.signed()?,
                "from" => lost.from = values.unsigned()?,
                "to" => lost.to = values.unsigned()?,
                "by_action" => {
                    let mut counts = Varints::new(values.column()?);
                    for slot in &mut lost.by_action {
                        if !counts.is_empty() {
                            *slot = counts.next()?;
                        }
                    }
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if lost.from > lost.to { Err(damaged("a run of lost events ends before it begins")) } else { Ok(lost) }
    }
}

/// Returns the payload of a marks chunk. Marks keep their order.
pub(super) fn encode_marks(device: i64, marks: &[Annotation]) -> Vec<u8> {
    let (mut column, mut last) = (Vec::new(), 0);
    for mark in marks {
        push(&mut column, zigzag(mark.time_us.wrapping_sub(last)));
        push(&mut column, mark.name.0.into());
        push(&mut column, mark.stage as u64);
        last = mark.time_us;
    }
    let mut message = MapWriter::map(2);
    message.signed("device", device);
    message.column("marks", &column);
    message.into_bytes()
}

/// The contents of a marks chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarksChunk {
    /// The device.
    pub device: i64,
    /// Its marks, in the order in which they were made. Their names are string numbers of the recording.
    pub marks: Vec<Annotation>,
}

impl MarksChunk {
    /// Reads the payload of a marks chunk.
    pub fn decode(payload: &[u8]) -> Checked<Self> {
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
        Ok(Self { device, marks })
    }
}

/// Returns the payload of a statistics chunk. Samples keep their order.
pub(super) fn encode_samples(device: i64, samples: &[Sample]) -> Vec<u8> {
    let (mut column, mut last) = (Vec::new(), Sample::default());
    for sample in samples {
        push(&mut column, zigzag(sample.time_us.wrapping_sub(last.time_us)));
        for (now, before) in sample.sums().into_iter().zip(last.sums()) {
            push(&mut column, zigzag(now.wrapping_sub(before) as i64));
        }
        last = *sample;
    }
    let mut message = MapWriter::map(2);
    message.signed("device", device);
    message.column("samples", &column);
    message.into_bytes()
}

/// The contents of a statistics chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatisticsChunk {
    /// The device.
    pub device: i64,
    /// Its samples, in the order in which they were taken.
    pub samples: Vec<Sample>,
}

impl StatisticsChunk {
    /// Reads the payload of a statistics chunk.
    pub fn decode(payload: &[u8]) -> Checked<Self> {
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
        Ok(Self { device, samples })
    }
}

/// Marks the end of a batch in a server's store. The chunks between two marks are one whole batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchEnd {
    /// The batch's number.
    pub seq: u64,
    /// When the collector sent it, by its own clock, in microseconds since the epoch; 0 if unknown.
    pub sent_us: i64,
}

impl BatchEnd {
    /// Returns the whole chunk.
    pub fn to_chunk(self) -> Vec<u8> {
        let mut message = MapWriter::map(2);
        message.unsigned("seq", self.seq);
        message.signed("sent_us", self.sent_us);
        super::chunk::seal_stored(super::Kind::Batch as u8, &message.into_bytes())
    }

    /// Reads the payload of a batch mark.
    pub fn decode(payload: &[u8]) -> Checked<Self> {
        let (mut seq, mut sent_us) = (None, 0);
        MapReader::new(payload).map(&mut |key, values| {
            match key {
                "seq" => seq = Some(values.unsigned()?),
                "sent_us" => sent_us = values.signed()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let seq = seq.ok_or_else(|| damaged("a batch mark has no number"))?;
        Ok(Self { seq, sent_us })
    }
}

/// The normal end of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// When, in microseconds since the epoch.
    pub time_us: i64,
    /// Events in the file.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
}

impl End {
    /// Returns the payload of an end chunk.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut message = MapWriter::map(3);
        message.signed("time_us", self.time_us);
        message.unsigned("events", self.events);
        message.unsigned("lost", self.lost);
        message.into_bytes()
    }

    /// Reads the payload of an end chunk.
    pub fn decode(payload: &[u8]) -> Checked<Self> {
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
    fn samples_and_batch_ends_survive_a_round_trip() {
        let sample = |time_us, allocated, active, reserved| Sample { time_us, allocated, active, reserved };
        let samples = [sample(5, 1 << 40, 7, u64::MAX), sample(3, 0, u64::MAX, 2), sample(3, 0, 0, 0)];
        for samples in [&samples[..], &samples[..1], &[]] {
            let want = StatisticsChunk { device: -3, samples: samples.to_vec() };
            assert_eq!(StatisticsChunk::decode(&encode_samples(-3, samples)).unwrap(), want);
        }
        let whole = encode_samples(0, &samples);
        assert!(StatisticsChunk::decode(&whole[..whole.len() - 1]).is_err());
        for (seq, sent_us) in [(0, 0), (1, 1_700_000_000_000_000), (u64::MAX, i64::MIN)] {
            let end = BatchEnd { seq, sent_us };
            assert_eq!(BatchEnd::decode(&end.to_chunk()[super::super::ENVELOPE_BYTES..]), Ok(end));
        }
        assert!(BatchEnd::decode(b"").is_err());
        // A missing key has its empty value.
        assert_eq!(BatchEnd::decode(b"\x81\xa3seq\x07"), Ok(BatchEnd { seq: 7, sent_us: 0 }));
    }
}
