//! The state that a recording leads to, without keeping its events: for servers that store chunks and pass them on.
//!
//! A [`Tracker`] reads every chunk and keeps, for each device, its position in the sequence, what is missing, the
//! allocator's current state ([`Forward`]), and the peak of each total after any event. Names are skipped: stacks keep
//! the numbers of the recording, so the state can be written back with the same symbols.
//!
//! Recordings come from untrusted sources, so everything that grows is counted ([`Tracker::bytes`]) and bounded
//! ([`ImportLimits::tracked_bytes`]): at the bound a tracker stops reading and says so ([`Tracker::overflow`]). While a
//! state takes effect, its parts and the tables that are made from them are there at once: up to as much memory again.
#![forbid(unsafe_code)]

use analysis::lod::Series;
use format::{
    Chunk, End, EventsChunk, Header, Kind, LostEvents, SegmentsAssembler, SegmentsChunk, Sequence, SymbolsChunk,
    TagStreams,
};
use replay::{Forward, Sums};
use trace::TagId;
use trace::error::{Checked, Fault, too_much};
use trace::event::Action;
use trace::limits::ImportLimits;
use trace::numbered::Numbered;
use trace::units::{PoolId, Stream};

/// The state of one device, as far as it has been read.
#[derive(Debug, Default)]
pub struct TrackedDevice {
    /// The number of events read.
    pub events: u64,
    /// The number of missing events.
    pub lost: u64,
    /// How many of the missing events are known to be of each [`Action`], by its code.
    pub lost_by_action: [u64; Action::ALL.len()],
    /// The number of failed requests.
    pub ooms: u64,
    /// The earliest and the latest time of an event, in microseconds since the epoch; `None` before the first event.
    pub span_us: Option<(i64, i64)>,
    /// The allocator's current state.
    pub now: Forward,
    /// The peak of each total, after any event or in a written state.
    pub peak: Sums,
    /// Allocated, active and reserved bytes over time, with the peak of each span.
    pub course: Series,
    sequence: Sequence,
    assembler: SegmentsAssembler,
    /// Its share of [`Tracker::held`].
    counted: usize,
}

impl TrackedDevice {
    /// Returns the sequence number of the next event; `None` until it is known.
    pub fn next(&self) -> Option<u64> {
        self.sequence.next
    }

    /// Returns the approximate bytes of memory that it occupies, with the parts of states that have not all come.
    fn bytes(&self) -> usize {
        size_of::<(i64, Self)>() + Series::BYTES + self.now.bytes() + self.assembler.bytes()
    }

    /// Records the current totals, at a time if it is known.
    #[inline]
    fn sample(&mut self, time_us: Option<i64>) {
        let sums = self.now.sums();
        self.peak.raise(&sums);
        if let Some(time_us) = time_us {
            self.course.add(time_us, [sums.allocated, sums.active, sums.reserved]);
        }
    }

    fn advance(&mut self, device: i64, seq: u64, known: Option<&LostEvents>) {
        let Some(lost) = self.sequence.advance(device, seq, known) else { return };
        self.lost = self.lost.saturating_add(lost.to - lost.from);
        for (sum, count) in self.lost_by_action.iter_mut().zip(lost.by_action) {
            *sum = sum.saturating_add(count);
        }
    }
}

/// Tracks the state of a recording's devices, chunk by chunk.
#[derive(Debug, Default)]
pub struct Tracker {
    limits: ImportLimits,
    /// The recording's header; `None` until it is read.
    pub header: Option<Header>,
    /// Devices by number.
    pub devices: Numbered<TrackedDevice>,
    /// The device of the last chunk; `None` if it had none.
    pub device: Option<i64>,
    /// The recording's end; `None` until it is read.
    pub end: Option<End>,
    /// The number of chunks with malformed contents.
    pub malformed: u64,
    streams: TagStreams,
    /// Bytes of memory for all devices and the header.
    held: usize,
    overflow: Option<String>,
}

/// Events between two checks of how much memory the state needs.
const CHECK_EVENTS: usize = 256;

impl Tracker {
    /// Creates a tracker for the start of a recording, or of a part that begins with header, symbols and state.
    pub fn new(limits: ImportLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Reads the next chunk. Malformed contents are counted in [`Tracker::malformed`] and left out; events that were
    /// read before are skipped, as [`format::recording::Recording`] does. Reads nothing after an overflow.
    pub fn add(&mut self, chunk: Chunk<'_>) {
        self.device = None;
        if self.overflow.is_some() {
            return;
        }
        let payload = chunk.payload;
        let read = match chunk.known_kind() {
            Some(Kind::Header) => Header::decode(payload).map(|header| self.add_header(header)),
            Some(Kind::Symbols) => {
                let room = self.room();
                SymbolsChunk::decode(payload).and_then(|names| self.streams.extend(names, &self.limits, room))
            }
            Some(Kind::Events) => self.add_events(payload),
            Some(Kind::LostEvents) => LostEvents::decode(payload).and_then(|lost| self.add_lost(&lost)),
            Some(Kind::Segments) => self.add_segments(payload),
            Some(Kind::End) => End::decode(payload).map(|end| self.end = Some(end)),
            // The others don't change the state, and kinds of later versions are not judged here.
            _ => Ok(()),
        };
        self.count_device();
        if let Err(fault) = read {
            match *fault {
                Fault::TooMuch(what) => self.overflow = Some(what),
                _ => self.malformed += 1,
            }
        }
    }

    /// Returns why nothing more is read: what exceeds a limit. `None` as long as nothing does.
    pub fn overflow(&self) -> Option<&str> {
        self.overflow.as_deref()
    }

    /// Returns the bytes of memory that may still be taken.
    fn room(&self) -> usize {
        self.limits.tracked_bytes.saturating_sub(self.bytes())
    }

    /// Updates what the device of the last chunk holds.
    fn count_device(&mut self) {
        let Some(device) = self.device.and_then(|number| self.devices.get_mut(number)) else { return };
        let bytes = device.bytes();
        self.held = self.held.saturating_sub(device.counted).saturating_add(bytes);
        device.counted = bytes;
    }

    fn add_header(&mut self, header: Header) {
        for (_, device) in self.devices.iter_mut() {
            device.now.set(&header.settings);
        }
        let before = self.header.as_ref().map_or(0, Header::bytes);
        self.held = self.held.saturating_sub(before).saturating_add(header.bytes());
        self.header = Some(header);
    }

    fn add_events(&mut self, payload: &[u8]) -> Checked {
        let EventsChunk { device, first, mut events } = EventsChunk::decode(payload)?;
        self.device = Some(device);
        let room = self.room();
        let Self { streams, devices, header, limits, .. } = self;
        let tracked = tracked(devices, header.as_ref(), device, limits)?;
        // What it may take at most, with what it has.
        let most = room.saturating_add(tracked.now.bytes());
        let mut unchecked = 0;
        tracked.advance(device, first, None);
        let mut known = tracked.sequence.known_from(first);
        let mut tag: Option<(TagId, (Stream, Option<PoolId>))> = None;
        while let Some(event) = events.next_event()? {
            if known > 0 {
                known -= 1;
                continue;
            }
            if unchecked == 0 {
                unchecked = CHECK_EVENTS;
                // Before the tables grow.
                if tracked.now.bytes_after(CHECK_EVENTS) > most {
                    return Err(too_much("its allocators hold more blocks than can be kept"));
                }
            }
            unchecked -= 1;
            // Long runs share a tag.
            let (stream, pool) = match tag {
                Some((number, place)) if number == event.tag => place,
                _ => {
                    let place = streams.get(event.tag);
                    tag = Some((event.tag, place));
                    place
                }
            };
            tracked.now.apply(&event, stream, pool);
            tracked.sample(Some(event.time_us));
            tracked.events += 1;
            tracked.ooms += u64::from(event.action == Action::Oom);
            let (earliest, latest) = tracked.span_us.unwrap_or((event.time_us, event.time_us));
            tracked.span_us = Some((earliest.min(event.time_us), latest.max(event.time_us)));
            tracked.sequence.count();
        }
        Ok(())
    }

    fn add_lost(&mut self, lost: &LostEvents) -> Checked {
        self.device = Some(lost.device);
        let tracked = tracked(&mut self.devices, self.header.as_ref(), lost.device, &self.limits)?;
        // Events missing before this run have no chunk of their own.
        tracked.advance(lost.device, lost.from, Some(lost));
        tracked.advance(lost.device, lost.to, Some(lost));
        Ok(())
    }

    fn add_segments(&mut self, payload: &[u8]) -> Checked {
        let room = self.room();
        let mut chunk = SegmentsChunk::decode(payload, room)?;
        // The state has none.
        chunk.drop_free_blocks();
        let device = chunk.device;
        self.device = Some(device);
        let tracked = tracked(&mut self.devices, self.header.as_ref(), device, &self.limits)?;
        let most = room.saturating_add(tracked.assembler.bytes());
        if let Some((at, segments)) = tracked.assembler.add(chunk, tracked.sequence.next, most)? {
            if tracked.now.bytes_of_state(&segments) > room.saturating_add(tracked.now.bytes()) {
                return Err(too_much("its allocators hold more blocks than can be kept"));
            }
            tracked.advance(device, at, None);
            tracked.now.assume_state(&segments);
            // A state has no time of its own: it follows the newest event.
            tracked.sample(tracked.span_us.map(|(_, latest)| latest));
        }
        Ok(())
    }

    /// Returns the totals of a device over time: to add samples that don't come from events, or to continue an earlier
    /// series. The caller bounds the number of devices.
    pub fn course(&mut self, device: i64) -> &mut Series {
        let tracked = created(&mut self.devices, self.header.as_ref(), device);
        let bytes = tracked.bytes();
        self.held = self.held.saturating_sub(tracked.counted).saturating_add(bytes);
        tracked.counted = bytes;
        &mut tracked.course
    }

    /// Returns the approximate bytes of memory in use. The cost does not depend on what is tracked.
    pub fn bytes(&self) -> usize {
        self.held.saturating_add(self.streams.bytes())
    }
}

/// Returns a device. Fails for one more than the limit.
fn tracked<'a>(
    devices: &'a mut Numbered<TrackedDevice>,
    header: Option<&Header>,
    device: i64,
    limits: &ImportLimits,
) -> Checked<&'a mut TrackedDevice> {
    if devices.len() >= limits.devices && devices.get(device).is_none() {
        return Err(too_much(format!("it has more than {} devices", limits.devices)));
    }
    Ok(created(devices, header, device))
}

/// Returns a device; a new one gets the header's settings.
fn created<'a>(
    devices: &'a mut Numbered<TrackedDevice>,
    header: Option<&Header>,
    device: i64,
) -> &'a mut TrackedDevice {
    if devices.get(device).is_none() {
        let now = header.map(|header| Forward::new(&header.settings)).unwrap_or_default();
        *devices.entry(device) = TrackedDevice { now, ..TrackedDevice::default() };
    }
    devices.entry(device)
}
