//! Reads a recording and writes what it says anew, chunk by chunk.
//!
//! What a stranger sends is never passed on unread. The result has no chunk of an unknown kind, no key that this version does
//! not read, and no byte between its chunks. Every chunk is encoded anew, except for events of which all columns were read
//! and found to be what this program would write: their chunk stays as it was packed. Only names and one chunk are held in
//! memory, however long the recording is.

use super::contents::{PositionedLoss, Recording, Track};
use crate::baked;
use crate::{Chunk, ChunkReader, End, EventColumns, Kind, OwnEvents, RECORDING, Writer};
use trace::error::ImportError;
use trace::limits::ImportLimits;

/// What a recording holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcribed {
    /// Its name.
    pub name: String,
    /// Its events, of all devices.
    pub events: u64,
    /// The numbers of its devices, in ascending order.
    pub devices: Vec<i64>,
}

/// Reads a recording that is pushed in pieces of any size, and appends the new one to the callers' buffers.
#[derive(Debug)]
pub struct Transcriber {
    limits: ImportLimits,
    chunks: ChunkReader,
    recording: Recording,
    writer: Option<Writer>,
    columns: EventColumns,
    /// Bytes that were read and, unpacked, what they hold.
    read: (u64, u64),
    /// Events that were written.
    events: u64,
    /// The time of the latest event, in microseconds since the epoch.
    newest_us: i64,
}

impl Transcriber {
    /// Creates a transcriber for the first byte of a recording.
    pub fn new(limits: ImportLimits) -> Self {
        let chunks = ChunkReader::at_start(&limits);
        let mut recording = Recording::default();
        recording.keeps_moments = true;
        Self {
            limits,
            chunks,
            recording,
            writer: None,
            columns: EventColumns::default(),
            read: (0, 0),
            events: 0,
            newest_us: i64::MIN,
        }
    }

    /// Reads the next bytes and appends to `out` what can be written by now. Fails at the first byte that is damaged, and
    /// beyond a limit; after an error nothing more can be read.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ImportError> {
        self.read.0 += bytes.len() as u64;
        let mut chunks = std::mem::replace(&mut self.chunks, ChunkReader::at_start(&self.limits));
        let mut done = Ok(());
        let pushed = chunks.push(bytes, &mut |chunk| {
            if done.is_err() {
                return;
            }
            self.read.1 += chunk.payload.len() as u64;
            let packed = chunk.end();
            if self.read.1 > self.limits.unpacked(packed) {
                done = Err(ImportError::Bomb { packed, plain: self.read.1 });
                return;
            }
            let byte = chunk.byte;
            match chunk.known_kind() {
                Some(Kind::Preview) => self.write_preview(chunk.payload, out),
                Some(Kind::Header) if self.writer.is_some() => {
                    done = Err(damaged(byte, "a second header follows"));
                    return;
                }
                Some(Kind::Events) if self.keep(chunk, out) => {}
                _ => {
                    self.recording.add(chunk, &self.limits);
                    self.write(out);
                }
            }
            if self.recording.malformed > 0 {
                done = Err(damaged(byte, "the contents of a chunk can't be read"));
            } else if self.writer.is_none() {
                done = Err(damaged(byte, "it does not begin with a header"));
            } else if self.events > self.limits.items as u64 {
                let what = format!("it has more than {} events", self.limits.items);
                done = Err(ImportError::TooMuch { byte, what });
            }
        });
        let damage = chunks.damages().0.first().copied();
        let unsupported = chunks.unsupported();
        self.chunks = chunks;
        done.and(pushed)?;
        match damage {
            Some(damage) => Err(damaged(damage.byte, "its bytes changed on the way")),
            None if unsupported > 0 => Err(damaged(self.read.0, "a later version of Vramscope packed it")),
            None => Ok(()),
        }
    }

    /// Ends the recording and appends the rest of the new one to `out`. Fails if it is cut off, or has no header.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<Transcribed, ImportError> {
        if let Some(byte) = self.chunks.finish() {
            return Err(damaged(byte, "it is cut off"));
        }
        let Self { recording, writer, events, newest_us, read, .. } = self;
        let (Some(header), Some(mut writer)) = (&recording.header, writer) else {
            return Err(damaged(read.0, "it has no header"));
        };
        let end = End { time_us: newest_us.max(header.started_us), events, ..recording.end.unwrap_or_default() };
        writer.end(&end, out);
        let mut devices: Vec<i64> = recording.devices.iter().map(|(number, _)| number).collect();
        devices.sort_unstable();
        Ok(Transcribed { name: header.name.clone(), events, devices })
    }

    /// Writes what the last chunk said.
    fn write(&mut self, out: &mut Vec<u8>) {
        let Self { recording, writer, columns, events, newest_us, .. } = self;
        let Some(header) = &recording.header else { return };
        let writer = writer.get_or_insert_with(|| Writer::new(header, out));
        writer.symbols(&recording.symbols, &recording.tags, out);
        for (device, track) in recording.devices.iter_mut() {
            write_track((device, track), writer, columns, out, (events, newest_us));
        }
        recording.drained();
    }

    /// Writes an events chunk as it is, if writing its events anew would give the same.
    fn keep(&mut self, chunk: Chunk<'_>, out: &mut Vec<u8>) -> bool {
        let Self { recording, writer: Some(writer), limits, .. } = self else { return false };
        let Some(own) = OwnEvents::read(chunk.payload) else { return false };
        let is_kept = recording.keep_events(&own, limits, |symbols, tags| {
            writer.symbols(symbols, tags, out);
            writer.keep(own.entry, chunk, out)
        });
        if is_kept {
            self.events += own.entry.count;
            self.newest_us = self.newest_us.max(own.entry.to_us);
        }
        is_kept
    }

    /// Writes a preview anew. One that can't be read is left out: all that it says is in the recording, too.
    fn write_preview(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        if let (Some(writer), Some(payload)) = (&mut self.writer, baked::rewritten(payload)) {
            writer.preview(&payload, out);
        }
    }
}

/// Writes what was read of one device, and empties it. Counts the events, and notes the time of the latest.
fn write_track(
    (device, track): (i64, &mut Track),
    writer: &mut Writer,
    columns: &mut EventColumns,
    out: &mut Vec<u8>,
    (events, newest_us): (&mut u64, &mut i64),
) {
    let count = track.trace.events.len() as u64;
    let next = track.next();
    let first = next.saturating_sub(count);
    // A chunk's losses are before its events.
    for PositionedLoss { lost, .. } in std::mem::take(&mut track.lost) {
        writer.lost_events(&lost, out);
    }
    let update = track.drain();
    columns.clear();
    for event in update.events.iter() {
        *newest_us = event.time_us.max(*newest_us);
        columns.push(event);
    }
    *events += count;
    writer.events(device, first, columns, out);
    writer.marks(device, &update.annotations, out);
    writer.statistics(device, &update.samples, out);
    writer.outside(device, &update.outside, out);
    for moment in &update.moments {
        writer.segments(device, next, &moment.segments, out);
    }
}

fn damaged(byte: u64, what: &str) -> ImportError {
    ImportError::Damaged { format: RECORDING, byte, what: what.to_owned() }
}
