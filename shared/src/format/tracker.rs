//! What a recording comes to, without keeping it: for who stores chunks or hands them on, and must know how far they go.
//!
//! A [`Tracker`] is given every chunk of a recording and keeps, for each device, how far it has come, what is missing,
//! what the allocator holds now ([`Forward`]), and the most that it ever held, looked at after each event. Names are stepped over: stacks keep the numbers that the recording gives
//! them, so the state can be written back beside the same symbols.

use super::chunk::Kind;
use super::events::EventChunk;
use super::frames::Chunk;
use super::header::Header;
use super::records::{End, Gap};
use super::segments::{self, Coming, Part};
use super::sequence::Sequence;
use super::symbols::Places;
use crate::event::Action;
use crate::import::error::Checked;
use crate::limits::ImportLimits;
use crate::lod::Series;
use crate::numbered::Numbered;
use crate::replay::{Forward, Sums};
use crate::trace::TagId;
use crate::units::{PoolId, Stream};

/// One device, as far as it has come.
#[derive(Debug, Default)]
pub struct Tracked {
    /// Events that came.
    pub events: u64,
    /// Events that are missing.
    pub lost: u64,
    /// How many of them are known to be of each [`Action`], by its code.
    pub lost_by_action: [u64; Action::ALL.len()],
    /// Requests that failed.
    pub ooms: u64,
    /// The earliest and the latest time of an event, in microseconds since the epoch; `None` before the first event.
    pub span_us: Option<(i64, i64)>,
    /// What the allocator holds.
    pub now: Forward,
    /// The most of each sum, after any event or by a state that was written.
    pub peak: Sums,
    /// The course of allocated, active and reserved bytes, with the most of each span.
    pub course: Series,
    sequence: Sequence,
    coming: Coming,
}

impl Tracked {
    /// The sequence number of the next event; `None` before anything told one.
    pub fn next(&self) -> Option<u64> {
        self.sequence.next
    }

    /// Takes in what is held now.
    #[inline]
    fn look(&mut self, time_us: Option<i64>) {
        let sums = self.now.sums();
        self.peak.raise(&sums);
        if let Some(time_us) = time_us {
            self.course.add(time_us, [sums.allocated, sums.active, sums.reserved]);
        }
    }

    fn advance(&mut self, device: i64, seq: u64, known: Option<&Gap>) {
        let Some(gap) = self.sequence.advance(device, seq, known) else { return };
        self.lost = self.lost.saturating_add(gap.to - gap.from);
        for (sum, count) in self.lost_by_action.iter_mut().zip(gap.by_action) {
            *sum = sum.saturating_add(count);
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Tracker {
    limits: ImportLimits,
    /// Where the recording comes from; `None` while its header is missing.
    pub header: Option<Header>,
    /// Devices by number.
    pub devices: Numbered<Tracked>,
    /// The device that the last chunk told of; `None` where it told of none.
    pub device: Option<i64>,
    /// How it ended; `None` while it did not.
    pub end: Option<End>,
    /// Chunks whose contents are not what they should be.
    pub malformed: u64,
    places: Places,
}

impl Tracker {
    /// At the start of a recording, or of a part of one that begins with header, symbols and state.
    pub fn new(limits: ImportLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes a chunk in, by its kind and its unpacked payload. What can't be read is counted in [`Tracker::malformed`] and
    /// left out, and so are events that came before: as [`super::Recording`] does.
    pub fn fold(&mut self, kind: u8, payload: &[u8]) {
        self.device = None;
        let folded = match Kind::from_code(kind) {
            Some(Kind::Header) => Header::decode(payload).map(|header| self.fold_header(header)),
            Some(Kind::Symbols) => self.places.decode(payload, &self.limits),
            Some(Kind::Events) => self.fold_events(payload),
            Some(Kind::Gap) => Gap::decode(payload).map(|gap| self.fold_gap(&gap)),
            Some(Kind::Segments) => segments::decode(payload).map(|part| self.fold_segments(part)),
            Some(Kind::End) => End::decode(payload).map(|end| self.end = Some(end)),
            // None of the others changes what is held, and a kind of a later version is not for this build to judge.
            _ => Ok(()),
        };
        self.malformed += u64::from(folded.is_err());
    }

    /// The same for a chunk that [`super::Frames`] gave.
    pub fn fold_chunk(&mut self, chunk: Chunk<'_>) {
        self.fold(chunk.kind, chunk.payload);
    }

    fn fold_header(&mut self, header: Header) {
        for (_, device) in self.devices.iter_mut() {
            device.now.set(&header.settings);
        }
        self.header = Some(header);
    }

    fn fold_events(&mut self, payload: &[u8]) -> Checked {
        let EventChunk { device, first, mut events } = EventChunk::decode(payload)?;
        self.device = Some(device);
        let Self { places, devices, header, .. } = self;
        let tracked = tracked(devices, header.as_ref(), device);
        tracked.advance(device, first, None);
        let mut known = tracked.sequence.known_from(first);
        let mut tag: Option<(TagId, (Stream, Option<PoolId>))> = None;
        while let Some(event) = events.next()? {
            if known > 0 {
                known -= 1;
                continue;
            }
            // Long runs share a tag.
            let (stream, pool) = match tag {
                Some((number, place)) if number == event.tag => place,
                _ => {
                    let place = places.get(event.tag);
                    tag = Some((event.tag, place));
                    place
                }
            };
            tracked.now.apply(&event, stream, pool);
            tracked.look(Some(event.time_us));
            tracked.events += 1;
            tracked.ooms += u64::from(event.action == Action::Oom);
            let (earliest, latest) = tracked.span_us.unwrap_or((event.time_us, event.time_us));
            tracked.span_us = Some((earliest.min(event.time_us), latest.max(event.time_us)));
            tracked.sequence.count();
        }
        Ok(())
    }

    fn fold_gap(&mut self, gap: &Gap) {
        self.device = Some(gap.device);
        let tracked = tracked(&mut self.devices, self.header.as_ref(), gap.device);
        // What is missing before it has no chunk that tells of it.
        tracked.advance(gap.device, gap.from, Some(gap));
        tracked.advance(gap.device, gap.to, Some(gap));
    }

    fn fold_segments(&mut self, part: Part) {
        let device = part.device;
        self.device = Some(device);
        let tracked = tracked(&mut self.devices, self.header.as_ref(), device);
        if let Some((at, segments)) = tracked.coming.take(part, tracked.sequence.next) {
            tracked.advance(device, at, None);
            tracked.now.assume_state(&segments);
            // A state has no time of its own; it is that after the newest event.
            tracked.look(tracked.span_us.map(|(_, latest)| latest));
        }
    }

    /// A device's course, for what events don't tell of it, and to carry on one that was found before.
    pub fn course(&mut self, device: i64) -> &mut Series {
        &mut tracked(&mut self.devices, self.header.as_ref(), device).course
    }

    /// Bytes of memory that all this takes, about.
    pub fn bytes(&self) -> usize {
        let devices = self.devices.iter().map(|(_, device)| size_of::<Tracked>() + device.now.bytes());
        self.places.bytes() + devices.sum::<usize>()
    }
}

/// A device, new with the header's settings.
fn tracked<'a>(devices: &'a mut Numbered<Tracked>, header: Option<&Header>, device: i64) -> &'a mut Tracked {
    if devices.get(device).is_none() {
        let now = header.map(|header| Forward::new(&header.settings)).unwrap_or_default();
        *devices.entry(device) = Tracked { now, ..Tracked::default() };
    }
    devices.entry(device)
}
