//! What has been read of a recording so far, chunk by chunk.

use crate::{
    Chunk, End, Entry, EventsChunk, Header, Kind, LostEvents, LostNames, MarksChunk, OutsideChunk, OwnEvents,
    SegmentsAssembler, SegmentsChunk, Sequence, StatisticsChunk, SymbolMap, SymbolsChunk,
};
use trace::error::{Checked, too_much};
use trace::frames::Symbols;
use trace::limits::{ImportLimits, OUTSIDE_SAMPLES};
use trace::narrow::number32;
use trace::numbered::Numbered;
use trace::{Annotation, DeviceTrace, Events, Loss, OutsideSample, Sample, Segment, Tags};

/// A device's segments at a position.
#[derive(Debug, Default)]
pub struct Moment {
    /// The number of events of the trace before it.
    pub position: u32,
    /// The number of losses before it, of those that the same [`DeviceUpdate`] holds.
    pub losses_before: usize,
    /// The segments.
    pub segments: Vec<Segment>,
}

/// What was read of one device since the last [`Track::drain`]. Positions count from there.
#[derive(Debug, Default)]
pub struct DeviceUpdate {
    /// The events.
    pub events: Events,
    /// The annotations.
    pub annotations: Vec<Annotation>,
    /// The samples of statistics.
    pub samples: Vec<Sample>,
    /// The samples of memory outside the allocator.
    pub outside: Vec<OutsideSample>,
    /// Events that are missing, by position.
    pub losses: Vec<Loss>,
    /// The position of each single loss, in order; `losses` joins those at one position.
    pub loss_positions: Vec<u32>,
    /// The segments at some positions.
    pub moments: Vec<Moment>,
}

/// Events that are missing from a trace, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionedLoss {
    /// The number of events of the trace before them.
    pub position: u32,
    /// The missing events.
    pub lost: LostEvents,
}

/// What has been read of one device.
#[derive(Debug, Default)]
pub struct Track {
    /// Its events and marks. Its segments are set by [`super::Decoder::finish`] only.
    pub trace: DeviceTrace,
    /// The missing events, in order.
    pub lost: Vec<PositionedLoss>,
    sequence: Sequence,
    /// The latest complete state.
    pub(super) moment: Option<Moment>,
    /// All complete states since the last [`Track::drain`], if they are kept.
    moments: Vec<Moment>,
    assembler: SegmentsAssembler,
}

impl Track {
    /// Returns the losses as a trace holds them: those at one position are joined.
    pub fn losses(&self) -> Vec<Loss> {
        let mut losses: Vec<Loss> = Vec::new();
        for &PositionedLoss { position, lost } in &self.lost {
            if losses.last().is_none_or(|last| last.position != position) {
                losses.push(Loss { position, ..Loss::default() });
            }
            if let Some(loss) = losses.last_mut() {
                loss.events = loss.events.saturating_add(lost.to - lost.from);
                for (sum, count) in loss.by_action.iter_mut().zip(lost.by_action) {
                    *sum = sum.saturating_add(count);
                }
            }
        }
        losses
    }

    /// Moves out what was read since the last call, so that it is not held twice.
    pub fn drain(&mut self) -> DeviceUpdate {
        let losses = self.losses();
        let loss_positions = self.lost.drain(..).map(|loss| loss.position).collect();
        DeviceUpdate {
            loss_positions,
            events: std::mem::take(&mut self.trace.events),
            annotations: std::mem::take(&mut self.trace.annotations),
            samples: std::mem::take(&mut self.trace.samples),
            outside: std::mem::take(&mut self.trace.outside),
            losses,
            moments: std::mem::take(&mut self.moments),
        }
    }

    /// Returns the sequence number of the first event that was read; `None` until it is known.
    pub(super) const fn first(&self) -> Option<u64> {
        self.sequence.first
    }

    /// Returns the sequence number of the next event.
    pub(super) fn next(&self) -> u64 {
        self.sequence.next.unwrap_or_default()
    }

    fn position(&self) -> u32 {
        number32(self.trace.events.len())
    }

    /// Advances to the event `seq`; what is missing before it is lost.
    fn advance(&mut self, device: i64, seq: u64, known: Option<&LostEvents>) {
        if let Some(lost) = self.sequence.advance(device, seq, known) {
            self.lost.push(PositionedLoss { position: self.position(), lost });
        }
    }
}

/// What has been read of a recording. It can be examined while it grows.
#[derive(Debug, Default)]
pub struct Recording {
    /// Its header; `None` if it was not read yet or is missing.
    pub header: Option<Header>,
    /// Strings, frames and stacks.
    pub symbols: Symbols,
    /// Tags.
    pub tags: Tags,
    /// Devices by number.
    pub devices: Numbered<Track>,
    /// Its end; `None` if it was not read yet or is missing.
    pub end: Option<End>,
    numbers: SymbolMap,
    /// Whether all states are kept for [`Track::drain`], and not only the latest.
    pub keeps_moments: bool,
    /// Events of all devices.
    pub events: usize,
    /// Bytes of memory that the contents of chunks took since they were last drained.
    pub pending: usize,
    /// Bytes of memory for the parts of states that have not all come.
    unfinished: usize,
    /// Samples of the memory beside the allocators of all devices.
    outside: usize,
    /// How many events have a stack of which names were lost, and how many have a tag that was lost.
    pub lost: (u64, u64),
    /// The number of chunks with malformed contents.
    pub malformed: u64,
    /// The number of chunks of unknown kinds.
    pub unknown: u64,
}

impl Recording {
    /// Notes that all devices were drained.
    pub fn drained(&mut self) {
        (self.events, self.pending, self.outside) = (0, 0, 0);
    }

    /// Returns the approximate bytes of memory for what was not drained, without the tables of names and tags.
    pub fn bytes(&self) -> usize {
        self.pending + self.unfinished + self.numbers.bytes() + self.header.as_ref().map_or(0, Header::bytes)
    }

    /// Returns the approximate bytes of memory for all that was not drained.
    pub fn memory(&self) -> usize {
        self.bytes() + self.symbols.memory() + self.tags.memory()
    }

    /// Returns how much of the names was lost.
    pub(super) fn lost_names(&self) -> LostNames {
        self.numbers.lost()
    }

    /// Reads the next chunk.
    pub fn add(&mut self, chunk: Chunk<'_>, limits: &ImportLimits) {
        let read = match chunk.known_kind() {
            Some(Kind::Header) => Header::decode(chunk.payload).map(|header| self.header = Some(header)),
            Some(Kind::Symbols) => {
                self.pending += chunk.payload.len();
                SymbolsChunk::decode(chunk.payload)
                    .and_then(|names| self.numbers.extend(names, &mut self.symbols, &mut self.tags, limits))
            }
            Some(Kind::Events) => self.add_events(chunk.payload, limits),
            Some(Kind::Marks) => self.add_marks(chunk.payload, limits),
            Some(Kind::LostEvents) => LostEvents::decode(chunk.payload).and_then(|lost| self.add_lost(&lost, limits)),
            Some(Kind::Segments) => self.add_segments(chunk.payload, limits),
            Some(Kind::End) => End::decode(chunk.payload).map(|end| self.end = Some(end)),
            Some(Kind::Statistics) => self.add_samples(chunk.payload, limits),
            Some(Kind::Outside) => self.add_outside(chunk.payload, limits),
            // A reader of the whole recording doesn't need them.
            Some(Kind::Index | Kind::Trailer | Kind::Batch | Kind::Label | Kind::Preview) => Ok(()),
            None => {
                self.unknown += 1;
                Ok(())
            }
        };
        self.malformed += u64::from(read.is_err());
    }

    fn add_events(&mut self, payload: &[u8], limits: &ImportLimits) -> Checked {
        let EventsChunk { device, first, mut events } = EventsChunk::decode(payload)?;
        let Self { symbols, tags, numbers, devices, lost, .. } = self;
        let track = track(devices, device, limits)?;
        track.advance(device, first, None);
        let mut known = track.sequence.known_from(first);
        let (mut tag, mut is_lost_tag) = (None, false);
        while let Some(mut event) = events.next_event()? {
            if known > 0 {
                known -= 1;
                continue;
            }
            // Long runs share a tag.
            event.tag = match tag {
                Some((number, id)) if number == event.tag => id,
                _ => {
                    let id = numbers.tag(event.tag.0, tags);
                    is_lost_tag = numbers.is_lost_tag(event.tag.0);
                    tag = Some((event.tag, id));
                    id
                }
            };
            lost.1 += u64::from(is_lost_tag);
            let number = event.stack.0;
            event.stack = numbers.stack(number, symbols);
            lost.0 += u64::from(numbers.has_lost(number, event.stack, symbols));
            track.trace.events.push(event);
            track.sequence.count();
            self.events += 1;
            self.pending += Events::BYTES_PER_EVENT;
        }
        Ok(())
    }

    /// Advances past an events chunk if writing its events anew would give the same chunk, and `keep` does so. Returns
    /// whether it did.
    pub(super) fn keep_events(
        &mut self,
        own: &OwnEvents,
        limits: &ImportLimits,
        keep: impl FnOnce(&Symbols, &Tags) -> bool,
    ) -> bool {
        let Entry { device, first, count, .. } = own.entry;
        let Self { numbers, symbols, tags, devices, .. } = self;
        let Ok(track) = track(devices, device, limits) else { return false };
        let is_next = track.sequence.next.is_none_or(|next| next == first);
        if !is_next || !track.lost.is_empty() || !numbers.keeps(own.stacks, own.tags) || !keep(symbols, tags) {
            return false;
        }
        track.sequence.next = Some(first + count);
        true
    }

    fn add_marks(&mut self, payload: &[u8], limits: &ImportLimits) -> Checked {
        let MarksChunk { device, mut marks } = MarksChunk::decode(payload)?;
        let Self { numbers, symbols, devices, .. } = self;
        let track = track(devices, device, limits)?;
        marks.iter_mut().for_each(|mark| mark.name = numbers.string(mark.name.0, symbols));
        self.pending += size_of_val(marks.as_slice());
        track.trace.annotations.append(&mut marks);
        Ok(())
    }

    fn add_samples(&mut self, payload: &[u8], limits: &ImportLimits) -> Checked {
        let StatisticsChunk { device, mut samples } = StatisticsChunk::decode(payload)?;
        let track = track(&mut self.devices, device, limits)?;
        self.pending += size_of_val(samples.as_slice());
        track.trace.samples.append(&mut samples);
        Ok(())
    }

    fn add_outside(&mut self, payload: &[u8], limits: &ImportLimits) -> Checked {
        let OutsideChunk { device, mut samples } = OutsideChunk::decode(payload)?;
        let kept = &mut track(&mut self.devices, device, limits)?.trace.outside;
        self.pending += size_of_val(samples.as_slice());
        self.outside += samples.len();
        kept.append(&mut samples);
        while kept.len() > OUTSIDE_SAMPLES || self.outside > limits.outside_samples && kept.len() > LEAST_OUTSIDE {
            let before = kept.len();
            *kept = kept.chunks(2).filter_map(OutsideSample::largest).collect();
            self.outside -= before - kept.len();
        }
        Ok(())
    }

    fn add_lost(&mut self, lost: &LostEvents, limits: &ImportLimits) -> Checked {
        let track = track(&mut self.devices, lost.device, limits)?;
        // Events missing before this run have no chunk of their own.
        track.advance(lost.device, lost.from, Some(lost));
        track.advance(lost.device, lost.to, Some(lost));
        Ok(())
    }

    fn add_segments(&mut self, payload: &[u8], limits: &ImportLimits) -> Checked {
        let chunk = SegmentsChunk::decode(payload, limits.unfinished_device_bytes)?;
        let device = chunk.device;
        let Self { numbers, symbols, devices, unfinished, .. } = self;
        let track = track(devices, device, limits)?;
        let others = unfinished.saturating_sub(track.assembler.bytes());
        let room = limits.unfinished_bytes.saturating_sub(others).min(limits.unfinished_device_bytes);
        let added = track.assembler.add(chunk, track.sequence.next, room);
        *unfinished = others + track.assembler.bytes();
        let Some((at, mut segments)) = added? else { return Ok(()) };
        for segment in &mut segments {
            segment.stack = numbers.stack(segment.stack.0, symbols);
            for block in &mut segment.blocks {
                block.stack = numbers.stack(block.stack.0, symbols);
            }
        }
        track.advance(device, at, None);
        let moment = Moment { position: track.position(), losses_before: track.lost.len(), segments };
        self.pending += Segment::memory_of(&moment.segments);
        if self.keeps_moments {
            track.moments.push(moment);
        } else {
            track.moment = Some(moment);
        }
        Ok(())
    }
}

/// The samples of the memory beside its allocator that every device may keep, however many all have together.
const LEAST_OUTSIDE: usize = 1 << 12;

/// Returns a device. Fails for one more than the limit.
fn track<'a>(devices: &'a mut Numbered<Track>, device: i64, limits: &ImportLimits) -> Checked<&'a mut Track> {
    if devices.len() >= limits.devices && devices.get(device).is_none() {
        return Err(too_much(format!("it has more than {} devices", limits.devices)));
    }
    let track = devices.entry(device);
    track.trace.device = device;
    Ok(track)
}
