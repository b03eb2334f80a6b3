//! A recording that is being read: pushed bytes, columns out.

use super::frames::{Frames, RECORDING};
use super::header::Header;
use super::notes;
use super::recording::{Recording, Track};
use crate::finding::Finding;
use crate::import::ImportError;
use crate::limits::ImportLimits;
use crate::replay;
use crate::trace::{DeviceTrace, Segment, Snapshot};

/// Reads one recording, pushed in pieces of any size.
#[derive(Debug)]
pub struct Decoder {
    limits: ImportLimits,
    frames: Frames,
    recording: Recording,
    packed: u64,
    plain: u64,
}

impl Decoder {
    /// At the start of a file.
    pub fn new(limits: ImportLimits) -> Self {
        Self { limits, frames: Frames::new(&limits), recording: Recording::default(), packed: 0, plain: 0 }
    }

    /// Reads the next bytes. After an error the file can't be read on. What is damaged is no error but becomes a
    /// finding; one are bytes that begin no recording, or one of a later version, and passed bounds.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        self.packed += bytes.len() as u64;
        let Self { limits, frames, recording, plain, .. } = self;
        let mut refused = None;
        let pushed = frames.push(bytes, &mut |chunk| {
            if refused.is_some() {
                return;
            }
            *plain += chunk.payload.len() as u64;
            // Not by what was pushed, which depends on the pieces.
            let packed = chunk.byte + chunk.bytes;
            let allowed = packed.saturating_mul(limits.recording_ratio).max(limits.ratio_grace_bytes);
            if *plain > allowed.min(limits.plain_bytes) {
                refused = Some(ImportError::Bomb { packed, plain: *plain });
                return;
            }
            recording.fold(chunk, limits);
            if recording.events > limits.items {
                let what = format!("it has more than {} events", limits.items);
                refused = Some(ImportError::TooMuch { byte: chunk.byte, what });
            }
        });
        refused.map_or(pushed, Err)
    }

    /// Events read so far.
    pub fn events(&self) -> usize {
        self.recording.events
    }

    /// What has come so far.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The whole file was pushed: what it holds, what is to be said of it, and where it comes from.
    pub fn finish(mut self) -> Result<(Snapshot, Vec<Finding>, Option<Header>), ImportError> {
        let cut_at = self.frames.finish();
        let Self { frames, mut recording, packed, .. } = self;
        if recording.header.is_none() && recording.devices.is_empty() {
            let what = "it ends before anything was recorded".to_owned();
            return Err(ImportError::Damaged { format: RECORDING, byte: cut_at.unwrap_or(packed), what });
        }
        let mut devices = recording.devices.take_sorted();
        let header = recording.header.take();
        let mut snapshot = Snapshot {
            settings: header.as_ref().map(|header| header.settings.clone()).unwrap_or_default(),
            symbols: std::mem::take(&mut recording.symbols),
            tags: std::mem::take(&mut recording.tags),
            devices: Vec::new(),
        };
        let mut findings = notes::of_file(&recording, &frames, cut_at, packed);
        for (_, track) in &mut devices {
            findings.extend(notes::of_device(track, recording.end.is_some()));
        }
        snapshot.devices = devices.into_iter().map(|(_, track)| ended(track, &mut snapshot)).collect();
        findings.extend(notes::of_history(&snapshot, cut_at.is_some()));
        Ok((snapshot, findings, header))
    }
}

/// A device with its segments at the end: as they were written, or, where the recording was cut, as they follow from the
/// last that were written and the events since.
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
    trace.segments.sort_by_key(|segment: &Segment| segment.address);
    for segment in &mut trace.segments {
        segment.blocks.sort_by_key(|block| block.address);
    }
    trace
}
