//! Examines and repairs what is stored, for people who look after a store.

use std::ops::RangeInclusive;
use std::sync::Arc;

use trace::limits::ServerLimits;

use super::SessionWriter;
use super::describe::describe;
use super::survey::Survey;
use crate::ingest::IngestError;
use crate::store::{Found, Hasher, Record, SegmentStore, StoreResult};

/// What was found out about one segment.
#[derive(Clone, Debug)]
pub struct SegmentHealth {
    /// The segment.
    pub found: Found,
    /// Bytes that are no readable chunk.
    pub damaged_bytes: u64,
    /// Bytes of a batch that was being written, for a segment that grows.
    pub incomplete_bytes: u64,
    /// Whether its labels can be read: the first one, and the last one if it is sealed.
    pub has_labels: bool,
    /// Whether its bytes have the hash that it is named by; `None` if it grows.
    pub has_hash: Option<bool>,
}

impl SegmentHealth {
    /// Whether anything was lost.
    pub fn is_damaged(&self) -> bool {
        self.damaged_bytes > 0 || !self.has_labels || self.has_hash == Some(false)
    }
}

/// What was found out about one session.
#[derive(Clone, Debug)]
pub struct SessionHealth {
    /// What its labels say.
    pub record: Record,
    /// Its segments, in order.
    pub segments: Vec<SegmentHealth>,
    /// The numbers of segments that are missing, as ranges in order: a name may claim any number. Empty if the whole session
    /// was already known to be missing.
    pub missing: Vec<RangeInclusive<u32>>,
}

impl SessionHealth {
    /// Whether anything was lost.
    pub fn is_damaged(&self) -> bool {
        !self.missing.is_empty() || self.segments.is_empty() || self.segments.iter().any(SegmentHealth::is_damaged)
    }
}

/// Reads all segments of a session and checks every byte of them. `before` is what the catalogue knows of it. Changes nothing.
pub fn inspect(
    store: &Arc<SegmentStore>,
    session: &str,
    found: &[Found],
    before: Option<&Record>,
) -> StoreResult<SessionHealth> {
    let (mut record, _) = describe(store, session, found)?;
    if let Some(last) = found.last().filter(|last| last.hash.is_none()) {
        // Its label tells what was before it only.
        let mut writer = SessionWriter::new(store, record, ServerLimits::default());
        // What can't be read is found below.
        let _ = writer.load(last.number, last.bytes, &mut |at, most| store.read(session, *last, at, most));
        record = Record { totals: writer.totals, ..writer.record };
    }
    let segments = found.iter().map(|segment| inspect_segment(store, session, *segment)).collect::<StoreResult<_>>()?;
    let first = store.marks(session).unwrap_or_default().first_segment.max(1);
    let last = found.last().map_or(0, |segment| segment.number);
    let last = before.and_then(|before| before.segments.last()).map_or(last, |known| known.number.max(last));
    if let Some(before) = before {
        record.miss(before, first);
    }
    let missing = missing_between(first, last, found.iter().map(|segment| segment.number));
    Ok(SessionHealth { record, segments, missing })
}

/// Returns which numbers from `first` to `last` are not among those that were found, which are in order.
fn missing_between(first: u32, last: u32, found: impl Iterator<Item = u32>) -> Vec<RangeInclusive<u32>> {
    let (mut missing, mut next) = (Vec::new(), first);
    for number in found.chain([last.saturating_add(1)]).filter(|number| *number >= first) {
        if number > next {
            missing.push(next..=number - 1);
        }
        next = next.max(number.saturating_add(1));
    }
    missing
}

fn inspect_segment(store: &Arc<SegmentStore>, session: &str, found: Found) -> StoreResult<SegmentHealth> {
    let mut hasher = Hasher::default();
    let mut hashed = 0;
    let seen = Survey::of(session, found.number, &mut |at, most| {
        let bytes = store.read(session, found, at, most)?;
        // A survey may read a part twice.
        if at == hashed {
            hasher.update(&bytes);
            hashed += bytes.len() as u64;
        }
        Ok(bytes)
    })?;
    let tail = if seen.is_torn && found.hash.is_none() { 0 } else { seen.tail };
    Ok(SegmentHealth {
        found,
        damaged_bytes: seen.damaged + tail,
        incomplete_bytes: seen.tail - tail,
        has_labels: seen.label.is_some() && (found.hash.is_none() || seen.last_label.is_some()),
        has_hash: found.hash.map(|hash| hash == hasher.finish()),
    })
}

/// Puts what is whole of each damaged segment in its place, sets the damaged files aside, and seals what was growing. Returns
/// the numbers of the segments that were replaced or sealed, and whether they were damaged.
pub fn repair(
    store: &Arc<SegmentStore>,
    session: &str,
    health: &SessionHealth,
) -> Result<Vec<(u32, bool)>, IngestError> {
    let mut repaired = Vec::new();
    for segment in &health.segments {
        if segment.is_damaged() || segment.found.hash.is_none() {
            SessionWriter::recover(store, session, segment.found, ServerLimits::default())?;
            repaired.push((segment.found.number, segment.is_damaged()));
        }
    }
    Ok(repaired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_segments_are_ranges_whatever_numbers_names_claim() {
        for (first, last, found, want) in [
            (1, 0, &[][..], &[][..]),
            (1, 3, &[1, 2, 3], &[]),
            (1, 3, &[], &[1..=3]),
            (1, 5, &[2, 2, 4], &[1..=1, 3..=3, 5..=5]),
            (3, 4, &[1, 2, 4], &[3..=3]),
            (1, 99_999_999, &[1, 99_999_999], &[2..=99_999_998]),
            (1, u32::MAX, &[u32::MAX], &[1..=u32::MAX - 1]),
        ] {
            assert_eq!(missing_between(first, last, found.iter().copied()), want, "{first} to {last}, {found:?}");
        }
    }
}
