//! The catalogue: the record of every session in one file, so that a start needn't read each of them.
//!
//! It is a cache. Whatever it says is compared with the segments that are found, and what differs is read from them.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::{Deserialize, Serialize};
use wire::is_session;

use super::Record;
use super::hash::Hasher;

/// The version of the file. A file of any other is ignored.
const VERSION: u32 = 1;

/// The records of sessions by their name, without the series of their totals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    /// The records.
    pub records: FxHashMap<String, Record>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    records: u64,
}

impl Catalogue {
    /// Returns a number that changes with the records.
    pub fn short(&self) -> u64 {
        let number = |record: &Record| {
            let Record { id, last, last_us, segments, notes, .. } = record;
            FxBuildHasher.hash_one((id, last, last_us, segments.len(), notes.len(), record.ended_us))
        };
        // The sum does not depend on the order.
        self.records.values().map(number).fold(0, u64::wrapping_add)
    }

    /// Returns the file: a head and the records, then the hash of both.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let head = Head { version: VERSION, records: self.records.len() as u64 };
        // Records hold nothing that MessagePack can't represent.
        let mut bytes = rmp_serde::to_vec(&head).unwrap_or_default();
        for record in self.records.values() {
            bytes.extend(rmp_serde::to_vec_named(record).unwrap_or_default());
        }
        let hash = hash_of(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
        bytes
    }

    /// Reads the file; `None` if it is damaged or of another version.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, hash) = bytes.split_at_checked(bytes.len().checked_sub(HASH_CHARS)?)?;
        if hash_of(body).as_bytes() != hash {
            return None;
        }
        let mut reader = body;
        let head: Head = rmp_serde::from_read(&mut reader).ok().filter(|head: &Head| head.version == VERSION)?;
        let mut records = FxHashMap::default();
        for _ in 0..head.records {
            let record: Record = rmp_serde::from_read(&mut reader).ok()?;
            if is_session(&record.id) {
                records.insert(record.id.clone(), record);
            }
        }
        Some(Self { records })
    }
}

/// Characters of a hash in hexadecimal digits.
const HASH_CHARS: usize = 64;

fn hash_of(bytes: &[u8]) -> String {
    let mut hasher = Hasher::default();
    hasher.update(bytes);
    hasher.finish().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_is_read_as_it_was_written_or_not_at_all() {
        let mut catalogue = Catalogue::default();
        for letter in ["a", "b", "c"] {
            let id = letter.repeat(26);
            catalogue.records.insert(id.clone(), Record { id, name: "train.py".to_owned(), ..Record::default() });
        }
        let bytes = catalogue.to_bytes();
        assert_eq!(Catalogue::from_bytes(&bytes), Some(catalogue));
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            assert_eq!(Catalogue::from_bytes(&broken), None, "byte {at}");
            assert_eq!(Catalogue::from_bytes(&bytes[..at]), None, "cut at {at}");
        }
    }
}
