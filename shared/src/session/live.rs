//! A job that runs: a session that grows with what its recorder sends.
//!
//! ```text
//! push: bytes ─► chunks ─► what came of each device      refresh: ─► replay, usage, call sites, summary ─► answers
//! ```
//! Chunks are taken in as they come, and nothing that is asked sees them before they are made answerable; that costs in
//! proportion to what came, not to what is held. When more is held than [`LiveLimits`] allow, the older half of the events
//! goes: the state at the cut becomes the start, and positions count from there. What is kept then is put together before,
//! a little at each refresh, so that none of them takes long.

use super::Session;
use super::growing::{Fill, Growing};
use crate::analysis::findings::findings_of;
use crate::analysis::oom::OutOfMemory;
use crate::finding::Finding;
use crate::format::{ChunkReader, Header, MAGIC, PRELUDE_BYTES};
use crate::import::{Encoding, Format, ImportError};
use crate::limits::LiveLimits;
use crate::query::{Answer, Query, Summary};
use crate::recording::{Recording, findings};
use crate::trace::{Annotation, DeviceTrace, Sample, Snapshot};

/// What a refresh brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// Events that came, of all devices.
    pub events: u64,
    /// What was given up of each device, if anything was. All its positions are less by so many events, and all its
    /// coordinates on the time axis by so many microseconds.
    pub trimmed: Vec<Trimmed>,
    /// Whether the recording has ended by now: nothing more will come.
    pub has_ended: bool,
    /// The first request that failed since the last refresh: the device, by its place in the summary, and the position
    /// right after it.
    pub oom: Option<(usize, u32)>,
}

/// Events that were given up at the front of a device's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// The device, by its place in the summary.
    pub device: usize,
    /// How many events.
    pub events: u32,
    /// Microseconds from where the trace began to where it begins now.
    pub span_us: i64,
}

/// See the module.
#[derive(Debug)]
pub struct LiveSession {
    chunks: ChunkReader,
    has_begun: bool,
    stream: Stream,
}

/// All but the cutting into chunks.
#[derive(Debug)]
struct Stream {
    limits: LiveLimits,
    recording: Recording,
    session: Session,
    /// Beside the session's devices.
    growing: Vec<Growing>,
    /// What came since the last refresh.
    grown: Grown,
    has_news: bool,
    /// Unpacked bytes so far.
    plain: u64,
    /// Whether what comes begins later than the recording did.
    is_late: bool,
}

impl LiveSession {
    /// Nothing has come yet: a session without devices.
    pub fn new(limits: LiveLimits) -> Self {
        let format = Format { encoding: Encoding::Recording, compression: None }.to_string();
        let mut recording = Recording::default();
        recording.keeps_moments = true;
        let stream = Stream {
            session: Session::new(Snapshot::default(), format, Vec::new(), &mut |_| {}),
            growing: Vec::new(),
            grown: Grown::default(),
            has_news: false,
            plain: 0,
            is_late: false,
            recording,
            limits,
        };
        Self { chunks: ChunkReader::at_start(&limits.import), has_begun: false, stream }
    }

    /// Takes in the next bytes of a recording, in pieces of any size. The first bytes of its file may be left out, and may
    /// come again wherever a piece begins with a chunk; so a stream goes on after its connection was lost. What is damaged
    /// is stepped over and becomes a finding, and events that came before are left out. An error is a recording of a later
    /// version, or one that unpacks to more than the limits allow; nothing can be read after it.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        let Some(&first) = bytes.first() else { return Ok(()) };
        let Self { chunks, has_begun, stream } = self;
        let mut bytes = bytes;
        if !*has_begun {
            *has_begun = true;
            if first != MAGIC[0] {
                *chunks = ChunkReader::at_chunk(&stream.limits.import, PRELUDE_BYTES as u64);
            }
        } else if chunks.unfinished() == 0 && bytes.starts_with(&MAGIC) {
            bytes = bytes.get(PRELUDE_BYTES..).unwrap_or(&[]);
        }
        let mut refused = None;
        let pushed = chunks.push(bytes, &mut |chunk| {
            if refused.is_some() {
                return;
            }
            stream.plain = stream.plain.saturating_add(chunk.payload.len() as u64);
            let limits = &stream.limits.import;
            let packed = chunk.byte.saturating_add(chunk.bytes);
            if stream.plain > packed.saturating_mul(limits.recording_ratio).max(limits.ratio_grace_bytes) {
                refused = Some(ImportError::Bomb { packed, plain: stream.plain });
                return;
            }
            stream.has_news = true;
            stream.lend_names();
            stream.recording.add(chunk, &stream.limits.import);
            stream.lend_names();
            // Whoever pushes a long recording at once holds no more of it than who refreshes on the way.
            if stream.recording.events > stream.limits.events / 4 {
                stream.grow();
            }
        });
        refused.map_or(pushed, Err)
    }

    /// Makes what came since answerable, and says what it was; `None` where nothing came.
    pub fn refresh(&mut self) -> Option<Grown> {
        let stream = &mut self.stream;
        if !std::mem::take(&mut stream.has_news) {
            return None;
        }
        stream.grow();
        stream.summarize(&self.chunks);
        let has_ended = stream.recording.end.is_some();
        Some(Grown { has_ended, ..std::mem::take(&mut stream.grown) })
    }

    /// What is held, as of the last refresh. Devices stand in the order in which they were first heard of, so that each
    /// keeps its place.
    pub fn summary(&self) -> &Summary {
        self.stream.session.summary()
    }

    /// The answer to a question about one device, by its place in the summary, as of the last refresh.
    pub fn answer(&mut self, device: usize, query: &Query) -> Answer {
        self.stream.session.answer(device, query)
    }

    /// The session as of the last refresh.
    pub fn session(&mut self) -> &mut Session {
        &mut self.stream.session
    }

    /// What comes begins later than the recording did: that there was something before is no fault of it.
    pub fn begin_late(&mut self) {
        self.stream.is_late = true;
    }

    /// How many more events can come before the oldest go.
    pub fn room(&self) -> usize {
        let Stream { session, recording, limits, .. } = &self.stream;
        let held: usize = session.snapshot.devices.iter().map(|trace| trace.events.len()).sum();
        limits.events.saturating_sub(held).saturating_sub(recording.events)
    }

    /// What the request that failed right before a position asked for, and why it could not be had; empty where none did.
    pub fn why_out_of_memory(&self, device: usize, position: u32) -> String {
        let session = &self.stream.session;
        let Some((trace, known)) = session.snapshot.devices.get(device).zip(session.devices.get(device)) else {
            return String::new();
        };
        let oom = OutOfMemory::at(trace, &session.snapshot.tags, &known.replay, position);
        oom.map(|oom| oom.to_string()).unwrap_or_default()
    }

    /// Bytes of memory that all this takes, about.
    pub fn bytes(&self) -> usize {
        let Stream { session, growing, recording, .. } = &self.stream;
        let names = &session.snapshot.symbols;
        // A name costs about as much again where it is looked up.
        let mut bytes = 2 * names.string_bytes() + 8 * names.stack_frames() + 24 * names.frame_count();
        bytes += recording.events * EVENT_BYTES + self.chunks.unfinished();
        for (trace, (device, growing)) in session.snapshot.devices.iter().zip(session.devices.iter().zip(growing)) {
            bytes += trace.events.len() * EVENT_BYTES + trace.annotations.len() * size_of::<Annotation>();
            bytes += trace.samples.len() * size_of::<Sample>();
            bytes += device.replay.bytes() + device.usage.memory() + device.caches.bytes();
            bytes += growing.bytes();
        }
        bytes
    }
}

/// Events that are put together of what will be kept for each event that comes, at most: there are twice as many, so it is
/// done when half of them have come.
const HASTE: usize = 4;
/// And at least at each refresh, as a share of all that may be held: some milliseconds.
const LEAST_SHARE: usize = 256;

/// See [`crate::trace::Events`].
pub(super) const EVENT_BYTES: usize = 33;

impl Stream {
    /// Hands the names from the session to the recording, which reads into them, or back.
    fn lend_names(&mut self) {
        std::mem::swap(&mut self.recording.symbols, &mut self.session.snapshot.symbols);
        std::mem::swap(&mut self.recording.tags, &mut self.session.snapshot.tags);
    }

    /// Takes what came into the session.
    fn grow(&mut self) {
        let Self { recording, session, growing, grown, limits, .. } = self;
        recording.events = 0;
        let has_ended = recording.end.is_some();
        let settings = recording.header.as_ref().map(|header| &header.settings);
        if let Some(settings) = settings.filter(|settings| **settings != session.snapshot.settings) {
            session.snapshot.settings = settings.clone();
            growing.iter_mut().for_each(|growing| growing.set(settings));
        }
        let mut came = Vec::new();
        for (index, (number, track)) in recording.devices.iter_mut().enumerate() {
            if index == session.devices.len() {
                session.snapshot.devices.push(DeviceTrace { device: number, ..DeviceTrace::default() });
                let (device, new) = Growing::begin(&session.snapshot);
                session.devices.push(device);
                growing.push(new);
            }
            let places = track.lost.len();
            let batch = track.drain();
            grown.events += batch.events.len() as u64;
            came.push(batch.events.len());
            let Snapshot { devices, tags, settings, .. } = &mut session.snapshot;
            let parts = (devices.get_mut(index), session.devices.get_mut(index), growing.get_mut(index));
            if let (Some(trace), Some(device), Some(growing)) = parts {
                growing.places += places;
                let failed = growing.known.ooms.len();
                growing.take(batch, trace, device, tags, settings);
                if has_ended {
                    growing.end(trace, device, tags, settings);
                }
                growing.known.extend(tags, trace, &device.replay);
                if grown.oom.is_none() {
                    grown.oom = growing.known.ooms.get(failed).map(|&(position, _)| (index, position));
                }
                if trace.annotations.len() > limits.marks {
                    trace.annotations.drain(..trace.annotations.len() - limits.marks / 2);
                }
                if trace.samples.len() > limits.marks {
                    // From end to end, and half as dense: times count from the first.
                    trace.samples = trace.samples.chunks(2).filter_map(Sample::largest).collect();
                }
            }
        }
        session.sites.extend(&session.snapshot.symbols, session.devices.iter().map(|device| &device.usage));
        self.trim(&came);
    }

    /// Gives up the older half of what there is too much of. What is to take its place is begun well before.
    fn trim(&mut self, came: &[usize]) {
        let Self { session, growing, grown, limits, recording, .. } = self;
        let all: usize = session.snapshot.devices.iter().map(|trace| trace.events.len()).sum();
        let fill = Fill { all, limit: limits.events, devices: session.devices.len() };
        for (index, growing) in growing.iter_mut().enumerate() {
            if all <= limits.events {
                if recording.end.is_some() {
                    growing.settle();
                } else if all > limits.events / 4 * 3 {
                    let slice = came.get(index).map_or(0, |came| came.saturating_mul(HASTE));
                    growing.prepare(index, fill, session, slice.max(limits.events / LEAST_SHARE));
                }
                continue;
            }
            let Some(trimmed) = growing.trim(index, fill, session) else { continue };
            grown.oom = match grown.oom {
                Some((device, position)) if device == index => {
                    position.checked_sub(trimmed.events).filter(|&position| position > 0).map(|at| (index, at))
                }
                other => other,
            };
            match grown.trimmed.iter_mut().find(|known| known.device == index) {
                Some(known) => {
                    known.events = known.events.saturating_add(trimmed.events);
                    known.span_us = known.span_us.saturating_add(trimmed.span_us);
                }
                None => grown.trimmed.push(trimmed),
            }
        }
    }

    /// Says what is held now.
    fn summarize(&mut self, chunks: &ChunkReader) {
        let Self { session, growing, recording, is_late, .. } = self;
        let mut found: Vec<Finding> = findings::of_chunks(recording, chunks);
        let mut summaries = Vec::new();
        for ((trace, device), growing) in session.snapshot.devices.iter().zip(&session.devices).zip(growing) {
            let Growing { known, places, is_trimmed, .. } = growing;
            let summary = known.tell(&session.snapshot, trace, &device.replay, &device.usage);
            found.extend(findings::of_losses(trace.device, &trace.losses, *places, recording.end.is_some()));
            let start = (!*is_trimmed && !*is_late).then_some(&summary.start);
            let tags = &session.snapshot.tags;
            found.extend(findings_of(trace, tags, &device.replay, start, &summary.ooms, false));
            summaries.push(summary);
        }
        let settings = session.snapshot.settings.as_written.clone();
        let format = std::mem::take(&mut session.summary.format);
        session.summary = Summary { format, findings: found, devices: summaries, settings, origin: None };
        if let Some(header) = &recording.header {
            session.summary.tell_origin(Header::clone(header));
        }
    }
}
