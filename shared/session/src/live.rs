//! The session of a running job, which grows with the recording that is sent.
//!
//! ```text
//! push: bytes ─► chunks ─► batch of each device      refresh: ─► replay, indexes, call sites, summary ─► answers
//! ```
//! Chunks are decoded as they arrive. Answers include them from the next refresh on, which costs in proportion to the
//! new events, not to all of them. When a session has more events than [`LiveLimits`] allow, the older half is removed:
//! the state at the cut becomes the start, and positions count from there. The copy that replaces a device is prepared
//! before, a part at each refresh, so that no refresh takes long.

use super::device::Device;
use super::live_device::{Capacity, LiveDevice, Trim};
use super::origin::tell_origin;
use super::requests::RecordedRequests;
use super::session::Session;
use analysis::oom;
use format::import::{Encoding, Format, ImportError};
use format::recording::{Recording, findings};
use format::{ChunkReader, Header, MAGIC, PRELUDE_BYTES};
use query::diagnosis::FailureDiagnosisQuery;
use query::{Answer, Query, Summary};
use replay::index::Index;
use trace::limits::LiveLimits;
use trace::units::Bytes;
use trace::{Annotation, DeviceTrace, OutsideSample, Sample, Snapshot};

/// What a refresh changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// The number of new events of all devices.
    pub events: u64,
    /// The devices that were trimmed. All positions of such a device are lower by the number of removed events, and all
    /// its coordinates on the time axis by the removed microseconds.
    pub trimmed: Vec<Trim>,
    /// Whether the recording has ended: no more events will come.
    pub has_ended: bool,
    /// The first request that failed since the last refresh: the device, by its index in the summary, and the position
    /// right after the request.
    pub oom: Option<(usize, u32)>,
}

/// A session whose recording is pushed as it arrives.
#[derive(Debug)]
pub struct LiveSession {
    chunks: ChunkReader,
    has_begun: bool,
    stream: Stream,
}

/// The recording as far as it was decoded, and its session.
#[derive(Debug)]
struct Stream {
    limits: LiveLimits,
    recording: Recording,
    session: Session,
    /// One for each of the session's devices.
    live: Vec<LiveDevice>,
    /// The changes since the last refresh.
    update: Update,
    has_news: bool,
    /// Unpacked bytes so far.
    plain: u64,
    /// Whether the stream begins later than the recording.
    is_late: bool,
    /// Whether it takes more memory than the limits allow.
    is_full: bool,
    /// Whether data that arrives waits for the next refresh, however much it is.
    is_held: bool,
}

impl LiveSession {
    /// Creates a session without devices.
    pub fn new(limits: LiveLimits) -> Self {
        let format = Format { encoding: Encoding::Recording, compression: None }.to_string();
        let mut recording = Recording::default();
        recording.keeps_moments = true;
        let stream = Stream {
            session: Session::new(Snapshot::default(), format, Vec::new(), &mut |_| {}),
            live: Vec::new(),
            update: Update::default(),
            has_news: false,
            plain: 0,
            is_late: false,
            is_full: false,
            is_held: false,
            recording,
            limits,
        };
        Self { chunks: ChunkReader::at_start(&limits.import), has_begun: false, stream }
    }

    /// Reads the next bytes of a recording, in pieces of any size. The prelude of its file may be left out, and may be
    /// repeated where a piece begins with a chunk, so that a stream can resume after its connection was lost. Damaged
    /// parts are skipped and become findings; repeated events are skipped.
    ///
    /// Errs if the recording is of a later version, unpacks to more than the limits allow, or needs more memory than they
    /// allow. Nothing can be read after an error.
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
            if stream.is_full {
                let limit = Bytes(stream.limits.bytes as u64);
                let what = format!("it needs more than {limit} of memory to be shown while it runs");
                refused = Some(ImportError::TooMuch { byte: chunk.byte, what });
                return;
            }
            stream.has_news = true;
            stream.lend_names();
            stream.recording.add(chunk, &stream.limits.import);
            stream.lend_names();
            // Bounds the memory when a long recording is pushed without refreshes.
            if stream.overflows(1) && !stream.is_held {
                stream.extend();
            }
        });
        refused.map_or(pushed, Err)
    }

    /// Holds the session at its last refresh, or releases it. While it is held, pushed data waits, and no answer
    /// includes it. The caller must stop pushing once [`Self::holds_much`] returns true.
    pub fn hold(&mut self, is_held: bool) {
        self.stream.is_held = is_held;
    }

    /// Returns whether more than half of the data that may wait for a refresh is waiting.
    pub fn holds_much(&self) -> bool {
        self.stream.overflows(2)
    }

    /// Returns the number of events that wait for a refresh.
    pub fn waiting(&self) -> usize {
        self.stream.recording.events
    }

    /// Makes the data that was pushed since the last refresh available to answers. Returns `None` if there is none.
    pub fn refresh(&mut self) -> Option<Update> {
        let stream = &mut self.stream;
        if !std::mem::take(&mut stream.has_news) {
            return None;
        }
        stream.extend();
        stream.summarize(&self.chunks);
        let has_ended = stream.recording.end.is_some();
        Some(Update { has_ended, ..std::mem::take(&mut stream.update) })
    }

    /// Returns the summary as of the last refresh. Devices are in the order in which they appeared, so that each keeps
    /// its index.
    pub fn summary(&self) -> &Summary {
        self.stream.session.summary()
    }

    /// Answers a question about one device, given by its index in the summary, as of the last refresh.
    pub fn answer(&mut self, device: usize, query: &Query) -> Answer {
        self.stream.session.answer(device, query)
    }

    /// Returns the requests of a device, given by its index in the summary, as of the last refresh.
    pub fn requests(&self, device: usize) -> Option<RecordedRequests> {
        self.stream.session.requests(device)
    }

    /// Returns the session as of the last refresh.
    pub fn session(&mut self) -> &mut Session {
        &mut self.stream.session
    }

    /// Declares that the stream begins later than the recording, so that missing earlier events are no finding.
    pub fn begin_late(&mut self) {
        self.stream.is_late = true;
    }

    /// Returns how many more events can be added before the oldest are trimmed.
    pub fn room(&self) -> usize {
        let Stream { session, recording, limits, .. } = &self.stream;
        let held: usize = session.snapshot.devices.iter().map(|trace| trace.events.len()).sum();
        limits.events.saturating_sub(held).saturating_sub(recording.events)
    }

    /// Returns the verdict on the request right before a position, as of that moment; empty if none failed there.
    pub fn why_out_of_memory(&mut self, device: usize, position: u32) -> String {
        let found = self.stream.session.ask(device, &FailureDiagnosisQuery { position });
        found.map(|diagnosis| diagnosis.verdict.sentence).unwrap_or_default()
    }

    /// Returns whether a request failed on a device and nothing was allocated there after it: what a program that ends of
    /// it leaves.
    pub fn ran_out(&self) -> bool {
        let Session { snapshot, summary, .. } = &self.stream.session;
        snapshot.devices.iter().zip(&summary.devices).any(|(trace, device)| oom::is_end(trace, &device.ooms))
    }

    /// Returns the approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.stream.bytes() + self.chunks.unfinished()
    }
}

/// Events of a copy that are prepared for each new event. A copy has at most twice as many events as are still to come
/// when it is begun, so it is complete when half of those have come.
const COPIED_PER_EVENT: usize = 4;
/// The least number of events of a copy that are prepared at each refresh, as a share of the limit: some milliseconds.
const LEAST_SHARE: usize = 256;

impl Stream {
    fn bytes(&self) -> usize {
        let Self { session, live, recording, .. } = self;
        let mut bytes = recording.bytes() + session.snapshot.symbols.memory() + session.snapshot.tags.memory();
        for (trace, (device, live)) in session.snapshot.devices.iter().zip(session.devices.iter().zip(live)) {
            bytes += trace.events.memory() + trace.annotations.len() * size_of::<Annotation>();
            bytes += trace.samples.len() * size_of::<Sample>();
            bytes += trace.outside.len() * size_of::<OutsideSample>();
            bytes += device.bytes() + live.bytes();
        }
        bytes
    }

    /// Returns whether more data waits for a refresh than the limit divided by `part`.
    fn overflows(&self, part: usize) -> bool {
        let Self { recording, limits, .. } = self;
        recording.events > limits.events / 4 / part || recording.pending > limits.pending_bytes / part
    }

    /// Moves the names from the session to the recording, which adds to them, or back.
    fn lend_names(&mut self) {
        std::mem::swap(&mut self.recording.symbols, &mut self.session.snapshot.symbols);
        std::mem::swap(&mut self.recording.tags, &mut self.session.snapshot.tags);
    }

    /// Moves what was decoded into the session.
    fn extend(&mut self) {
        let Self { recording, session, live, update, limits, .. } = self;
        recording.drained();
        let has_ended = recording.end.is_some();
        if let Some(header) = recording.header.as_ref().filter(|_| session.header.is_none()) {
            session.snapshot.settings = header.settings.clone();
            session.header = Some(Header::clone(header));
        }
        let mut added = Vec::new();
        for (index, (number, track)) in recording.devices.iter_mut().enumerate() {
            if index == session.devices.len() {
                session.snapshot.devices.push(DeviceTrace { device: number, ..DeviceTrace::default() });
                session.devices.push(Device::default());
                live.push(LiveDevice::default());
            }
            let batch = track.drain();
            update.events += batch.events.len() as u64;
            added.push(batch.events.len());
            let Snapshot { devices, tags, settings, .. } = &mut session.snapshot;
            let parts = (devices.get_mut(index), session.devices.get_mut(index), live.get_mut(index));
            if let (Some(trace), Some(device), Some(live)) = parts {
                let failed = device.indexes.facts.ooms.len();
                live.extend(batch, trace, device, tags, settings);
                if has_ended {
                    live.end(trace, device, tags, settings);
                }
                if update.oom.is_none() {
                    update.oom = device.indexes.facts.ooms.get(failed).map(|&(position, _)| (index, position));
                }
                if trace.annotations.len() > limits.marks {
                    trace.annotations.drain(..trace.annotations.len() - limits.marks / 2);
                }
                if trace.samples.len() > limits.marks {
                    // Halves the density over the whole span: times count from the first sample.
                    trace.samples = trace.samples.chunks(2).filter_map(Sample::largest).collect();
                }
                if trace.outside.len() > limits.marks {
                    trace.outside = trace.outside.chunks(2).filter_map(OutsideSample::largest).collect();
                }
            }
        }
        session.extend_sites();
        self.trim(&added);
        self.is_full |= self.bytes() > self.limits.bytes;
    }

    /// Removes the older half of the events if there are too many. The copies that replace the devices are begun well
    /// before.
    fn trim(&mut self, added: &[usize]) {
        let Self { session, live, update, limits, recording, .. } = self;
        let events: usize = session.snapshot.devices.iter().map(|trace| trace.events.len()).sum();
        let capacity = Capacity { events, limit: limits.events, devices: session.devices.len() };
        for (index, live) in live.iter_mut().enumerate() {
            if events <= limits.events {
                if recording.end.is_some() {
                    live.settle();
                } else if events > limits.events / 4 * 3 {
                    let count = added.get(index).map_or(0, |added| added.saturating_mul(COPIED_PER_EVENT));
                    live.prepare(index, capacity, session, count.max(limits.events / LEAST_SHARE));
                }
                continue;
            }
            let Some(trim) = live.trim(index, capacity, session) else { continue };
            update.oom = match update.oom {
                Some((device, position)) if device == index => {
                    position.checked_sub(trim.events).filter(|&position| position > 0).map(|at| (index, at))
                }
                other => other,
            };
            match update.trimmed.iter_mut().find(|known| known.device == index) {
                Some(known) => {
                    known.events = known.events.saturating_add(trim.events);
                    known.span_us = known.span_us.saturating_add(trim.span_us);
                }
                None => update.trimmed.push(trim),
            }
        }
    }

    /// Updates the session's summary.
    fn summarize(&mut self, chunks: &ChunkReader) {
        let Self { session, live, recording, is_late, .. } = self;
        let has_ended = recording.end.is_some();
        let mut found = findings::of_chunks(recording, chunks);
        if has_ended && !*is_late {
            found.extend(findings::empty_history(&session.snapshot));
        }
        session.summarize(found, |index, trace| {
            live.get(index).map(|live| live.notes(trace, *is_late, has_ended)).unwrap_or_default()
        });
        if let Some(header) = &recording.header {
            tell_origin(&mut session.summary, Header::clone(header));
        }
    }
}
