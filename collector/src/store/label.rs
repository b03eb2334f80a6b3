//! The label of a segment, which describes its session, so that a segment can be read without any other file.

use format::{Kind, seal};
use serde::{Deserialize, Serialize};

use super::{Record, SegmentInfo};

/// The first chunk of every segment of the store, and the last one of a sealed segment. Downloads don't contain it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Label {
    /// The session's record at this point, with the segments before this one.
    pub record: Record,
    /// This segment. In the first label its length is that of its head; in the last one, that of everything before the label.
    pub segment: SegmentInfo,
    /// Whether it is the last chunk of a sealed segment.
    pub is_last: bool,
}

impl Label {
    /// Returns the whole chunk.
    pub fn to_chunk(&self) -> Vec<u8> {
        // A label holds nothing that MessagePack can't represent.
        seal(Kind::Label as u8, &rmp_serde::to_vec_named(self).unwrap_or_default())
    }

    /// Reads the payload of a label's chunk. `None` if it is malformed, or of another session or segment.
    pub fn decode(payload: &[u8], session: &str, number: u32) -> Option<Self> {
        let label: Self = rmp_serde::from_slice(payload).ok()?;
        (label.record.id == session && label.segment.number == number).then_some(label)
    }
}
