//! The fold over chunks: what a recording comes to, as far as it has come.

use super::chunk::Kind;
use super::events::EventChunk;
use super::frames::Chunk;
use super::header::Header;
use super::records::{self, End, Gap};
use super::segments::{self, Coming, Part};
use super::sequence::Sequence;
use super::symbols::Numbers;
use crate::frames::Symbols;
use crate::import::error::Checked;
use crate::limits::ImportLimits;
use crate::numbered::Numbered;
use crate::trace::{Annotation, DeviceTrace, Events, Loss, Sample, Segment, Tags};

/// Segments of a device at a moment.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    /// How many events of the trace come before it.
    pub(crate) position: u32,
    /// How many of the gaps that came since the device was last taken come before it.
    pub(crate) gaps: usize,
    pub(crate) segments: Vec<Segment>,
}

/// What came of one device since it was last taken. Positions count from there.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) events: Events,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) losses: Vec<Loss>,
    /// After how many events each gap is, in the order in which they came.
    pub(crate) gaps: Vec<u32>,
    pub(crate) moments: Vec<Moment>,
}

/// Events that are missing from a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Between which events of the trace: after so many.
    pub position: u32,
    /// Which, and of what kinds.
    pub gap: Gap,
}

/// One device, as far as it has come.
#[derive(Debug, Default)]
pub struct Track {
    /// Its events and marks. Its segments are those of [`super::Decoder::finish`] only.
    pub trace: DeviceTrace,
    /// What is missing from the events, in order.
    pub missing: Vec<Missing>,
    sequence: Sequence,
    /// The latest state that came whole.
    pub(super) moment: Option<Moment>,
    /// All states that came whole, where they are kept, and have not been taken.
    moments: Vec<Moment>,
    coming: Coming,
}

impl Track {
    /// What is missing, as a trace has it: gaps at one place, such as one that was told beside one that was not, are one.
    pub(super) fn losses(&self) -> Vec<Loss> {
        let mut losses: Vec<Loss> = Vec::new();
        for &Missing { position, gap } in &self.missing {
            if losses.last().is_none_or(|last| last.position != position) {
                losses.push(Loss { position, ..Loss::default() });
            }
            if let Some(loss) = losses.last_mut() {
                loss.events = loss.events.saturating_add(gap.to - gap.from);
                for (sum, count) in loss.by_action.iter_mut().zip(gap.by_action) {
                    *sum = sum.saturating_add(count);
                }
            }
        }
        losses
    }

    /// Takes what came, so that it is not held twice.
    pub(crate) fn take(&mut self) -> Batch {
        let losses = self.losses();
        let gaps = self.missing.drain(..).map(|missing| missing.position).collect();
        Batch {
            gaps,
            events: std::mem::take(&mut self.trace.events),
            annotations: std::mem::take(&mut self.trace.annotations),
            samples: std::mem::take(&mut self.trace.samples),
            losses,
            moments: std::mem::take(&mut self.moments),
        }
    }

    fn position(&self) -> u32 {
        self.trace.events.len() as u32
    }

    /// Everything before `seq` has come, or never will.
    fn advance(&mut self, device: i64, seq: u64, known: Option<&Gap>) {
        if let Some(gap) = self.sequence.advance(device, seq, known) {
            self.missing.push(Missing { position: self.position(), gap });
        }
    }
}

/// What a recording holds, as far as it has come. It can be looked at while it grows.
#[derive(Debug, Default)]
pub struct Recording {
    /// Where it comes from; `None` while (or when) its header is missing.
    pub header: Option<Header>,
    /// Strings, frames and stacks.
    pub symbols: Symbols,
    /// Tags.
    pub tags: Tags,
    /// Devices by number.
    pub devices: Numbered<Track>,
    /// How it ended; `None` while (or when) it did not.
    pub end: Option<End>,
    numbers: Numbers,
    /// Whether all states are kept, for who takes them with [`Track::take`].
    pub(crate) keeps_moments: bool,
    /// Events of all devices.
    pub(crate) events: usize,
    /// Chunks whose contents are not what they should be.
    pub(crate) malformed: u64,
    /// Chunks of kinds that this build does not know.
    pub(crate) unknown: u64,
}

impl Recording {
    /// Takes a chunk in.
    pub(crate) fn fold(&mut self, chunk: Chunk<'_>, limits: &ImportLimits) {
        let folded = match Kind::from_code(chunk.kind) {
            Some(Kind::Header) => Header::decode(chunk.payload).map(|header| self.header = Some(header)),
            Some(Kind::Symbols) => self.numbers.decode(chunk.payload, &mut self.symbols, &mut self.tags, limits),
            Some(Kind::Events) => self.fold_events(chunk.payload),
            Some(Kind::Marks) => self.fold_marks(chunk.payload),
            Some(Kind::Gap) => Gap::decode(chunk.payload).map(|gap| self.fold_gap(&gap)),
            Some(Kind::Segments) => segments::decode(chunk.payload).map(|part| self.fold_segments(part)),
            Some(Kind::End) => End::decode(chunk.payload).map(|end| self.end = Some(end)),
            Some(Kind::Statistics) => self.fold_samples(chunk.payload),
            // Who reads everything has no use for them.
            Some(Kind::Index | Kind::Trailer | Kind::Batch) => Ok(()),
            None => {
                self.unknown += 1;
                Ok(())
            }
        };
        self.malformed += u64::from(folded.is_err());
    }

    fn track(&mut self, device: i64) -> &mut Track {
        let track = self.devices.entry(device);
        track.trace.device = device;
        track
    }

    fn fold_events(&mut self, payload: &[u8]) -> Checked {
        let EventChunk { device, first, mut events } = EventChunk::decode(payload)?;
        let Self { tags, numbers, devices, .. } = self;
        let track = devices.entry(device);
        track.trace.device = device;
        track.advance(device, first, None);
        let mut known = track.sequence.known_from(first);
        let mut tag = None;
        while let Some(mut event) = events.next()? {
            if known > 0 {
                known -= 1;
                continue;
            }
            // Long runs share a tag.
            event.tag = match tag {
                Some((number, id)) if number == event.tag => id,
                _ => {
                    let id = numbers.tag(event.tag.0, tags);
                    tag = Some((event.tag, id));
                    id
                }
            };
            event.stack = numbers.stack(event.stack.0);
            track.trace.events.push(event);
            track.sequence.count();
            self.events += 1;
        }
        Ok(())
    }

    fn fold_marks(&mut self, payload: &[u8]) -> Checked {
        let (device, marks) = records::decode_marks(payload)?;
        for mut mark in marks {
            mark.name = self.numbers.string(mark.name.0);
            self.track(device).trace.annotations.push(mark);
        }
        Ok(())
    }

    fn fold_samples(&mut self, payload: &[u8]) -> Checked {
        let (device, mut samples) = records::decode_samples(payload)?;
        self.track(device).trace.samples.append(&mut samples);
        Ok(())
    }

    fn fold_gap(&mut self, gap: &Gap) {
        let track = self.track(gap.device);
        // What is missing before it has no chunk that tells of it.
        track.advance(gap.device, gap.from, Some(gap));
        track.advance(gap.device, gap.to, Some(gap));
    }

    fn fold_segments(&mut self, part: Part) {
        let device = part.device;
        let Self { numbers, devices, .. } = self;
        let track = devices.entry(device);
        track.trace.device = device;
        let Some((at, mut segments)) = track.coming.take(part, track.sequence.next) else { return };
        for segment in &mut segments {
            segment.stack = numbers.stack(segment.stack.0);
            for block in &mut segment.blocks {
                block.stack = numbers.stack(block.stack.0);
            }
        }
        track.advance(device, at, None);
        let moment = Moment { position: track.position(), gaps: track.missing.len(), segments };
        if self.keeps_moments {
            track.moments.push(moment);
        } else {
            track.moment = Some(moment);
        }
    }
}
