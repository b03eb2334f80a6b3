//! Reads a whole recording into a snapshot.

use super::contents::{Recording, Track};
use super::findings;
use crate::{ChunkReader, Fault, Header, PRELUDE_BYTES, RECORDING, UPDATE};
use query::finding::Finding;
use trace::error::ImportError;
use trace::limits::ImportLimits;
use trace::order::SortFew;
use trace::{DeviceTrace, Segment, Snapshot};

/// Reads one recording, pushed in pieces of any size.
#[derive(Debug)]
pub struct Decoder {
    limits: ImportLimits,
    chunks: ChunkReader,
    recording: Recording,
    packed: u64,
    plain: u64,
    /// The most bytes of memory that what is read may take.
    memory: u64,
}

impl Decoder {
    /// Creates a decoder for the first byte of a file.
    pub fn new(limits: ImportLimits) -> Self {
        let chunks = ChunkReader::at_start(&limits);
        Self { limits, chunks, recording: Recording::default(), packed: 0, plain: 0, memory: u64::MAX }
    }

    /// Reads the next bytes. Damage becomes a finding. Fails if the first bytes are no recording's, for a later
    /// version, and beyond a limit; after an error nothing more can be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        self.packed += bytes.len() as u64;
        let Self { limits, chunks, recording, plain, memory, .. } = self;
        let mut refused = None;
        let pushed = chunks.push(bytes, &mut |chunk| {
            if refused.is_some() {
                return;
            }
            *plain += chunk.payload.len() as u64;
            // Up to the end of the chunk: the bytes pushed so far depend on the pieces.
            let packed = chunk.end();
            if *plain > limits.unpacked(packed) {
                refused = Some(ImportError::Bomb { packed, plain: *plain });
                return;
            }
            recording.add(chunk, limits);
            if recording.events > limits.items {
                let what = format!("it has more than {} events", limits.items);
                refused = Some(ImportError::TooMuch { byte: chunk.byte, what });
            } else if recording.memory() as u64 > *memory {
                refused = Some(ImportError::Costly { packed, memory: *memory });
            }
        });
        refused.map_or(pushed, Err)
    }

    /// Bounds the memory that what is read may take from here on, for a file that was compressed once more.
    pub(crate) fn bound(&mut self, memory: u64) {
        self.memory = memory;
    }

    /// Returns the number of events read so far.
    pub fn events(&self) -> usize {
        self.recording.events
    }

    /// Returns what was read so far.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Ends the file. Returns its contents, the findings about it, and its header.
    pub fn finish(mut self) -> Result<(Snapshot, Vec<Finding>, Option<Header>), ImportError> {
        let cut_at = self.chunks.finish();
        let Self { chunks, mut recording, packed, .. } = self;
        if recording.header.is_none() && recording.devices.is_empty() {
            if chunks.unsupported() > 0 {
                let what = "its chunks are packed with an unknown codec".to_owned();
                return Err(ImportError::Unsupported {
                    format: RECORDING,
                    byte: PRELUDE_BYTES as u64,
                    what,
                    advice: UPDATE,
                });
            }
            let what = "it ends before anything was recorded".to_owned();
            return Err(ImportError::Damaged { format: RECORDING, byte: cut_at.unwrap_or(packed), what });
        }
        let mut found = findings::of_file(&recording, &chunks, cut_at, packed);
        let mut devices = recording.devices.take_sorted();
        let header = recording.header.take();
        let mut snapshot = Snapshot {
            settings: header.as_ref().map(|header| header.settings.clone()).unwrap_or_default(),
            symbols: std::mem::take(&mut recording.symbols),
            tags: std::mem::take(&mut recording.tags),
            ..Snapshot::default()
        };
        let faults = header.as_ref().map_or(&[][..], |header| &header.faults);
        let is_cut = cut_at.is_some() || faults.iter().any(|fault| fault.is_cut);
        found.extend(faults.iter().map(Fault::finding));
        for (_, track) in &mut devices {
            found.extend(findings::of_device(track, recording.end.is_some()));
        }
        snapshot.devices = devices.into_iter().map(|(_, track)| ended(track, &mut snapshot)).collect();
        // What is missing may have been there.
        let is_damaged = !chunks.damages().0.is_empty() || recording.malformed > 0;
        found.extend(findings::of_history(&snapshot, is_cut || is_damaged));
        Ok((snapshot, found, header))
    }
}

/// Returns a device's trace with its segments at the end: as written, or, in a truncated recording, derived from the
/// last written state and the events since.
fn ended(track: Track, snapshot: &mut Snapshot) -> DeviceTrace {
    let losses = track.losses();
    let Track { mut trace, moment, .. } = track;
    trace.losses = losses;
    let moment = moment.unwrap_or_default();
    if moment.position as usize == trace.events.len() {
        trace.segments = moment.segments;
    } else {
        replay::end(&mut trace, &mut snapshot.tags, &snapshot.settings, &moment.segments, moment.position);
    }
    trace.segments.sort_few_by_key(|segment: &Segment| segment.address);
    for segment in &mut trace.segments {
        segment.blocks.sort_few_by_key(|block| block.address);
    }
    trace
}
