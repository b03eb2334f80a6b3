//! Questions, answers and summaries in the format of [Postcard](https://postcard.jamesmunns.com/wire-format.html), which writes the
//! fields one after the other.
//!
//! Nothing here fails half-way: what can't be read leaves a mark in the reader and a value that is thrown away. So code that reads
//! a type has no branch after each field, which makes it half as large. Maps and characters are not supported.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::indexing_slicing))]

mod never;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use serde::{Deserialize, Serialize};

use crate::{Answer, Query, Summary};
use reader::Reader;
use writer::Writer;

/// Appends a value to `out`.
pub fn append<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let Ok(()) = value.serialize(Writer(out));
}

/// Returns a value as bytes.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    append(&mut out, value);
    out
}

/// Takes a value from the front of `bytes`; `None` if there is none.
pub fn take<'de, T: Deserialize<'de>>(bytes: &mut &'de [u8]) -> Option<T> {
    let mut reader = Reader::new(bytes);
    let Ok(value) = T::deserialize(&mut reader);
    *bytes = reader.rest()?;
    Some(value)
}

/// Returns the value that [`encode`] wrote; `None` for other bytes.
pub fn decode<'de, T: Deserialize<'de>>(mut bytes: &'de [u8]) -> Option<T> {
    take(&mut bytes)
}

/// A value that is encoded in this crate, for all that write and read it: such code is generic, and would be compiled anew in each of
/// those crates.
pub trait Encode: Sized {
    /// Appends the value to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// Takes a value from the front of `bytes`; `None` if there is none.
    fn take(bytes: &mut &[u8]) -> Option<Self>;

    /// Returns a copy by way of bytes; `None` if they can't be read. To clone every answer field by field takes 17 kB of code, which
    /// the page's engine would have for previews alone.
    fn duplicate(&self) -> Option<Self> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        Self::take(&mut bytes.as_slice())
    }
}

macro_rules! encode {
    ($($value:ty),*) => {$(
        impl Encode for $value {
            fn encode(&self, out: &mut Vec<u8>) {
                append(out, self);
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                take(bytes)
            }
        }
    )*};
}

encode!(Answer, Query, Summary);
