//! Numbers serialized as raw little-endian bytes, so that a hundred thousand of them cost one copy.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A vector of plain numbers, serialized as one byte string.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed<T>(pub Vec<T>);

impl<T> Default for Packed<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> std::ops::Deref for Packed<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> std::ops::DerefMut for Packed<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> From<Vec<T>> for Packed<T> {
    fn from(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<T: bytemuck::NoUninit> Serialize for Packed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytemuck::cast_slice(&self.0))
    }
}

impl<'de, T: bytemuck::AnyBitPattern> Deserialize<'de> for Packed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes: std::borrow::Cow<'de, [u8]> = serde_bytes::deserialize(deserializer)?;
        // The bytes may be unaligned, so they are read one value at a time. A part of a number at their end is left out.
        Ok(Self(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()))
    }
}
