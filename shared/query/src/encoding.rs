//! Questions, answers and summaries in [Postcard](https://postcard.jamesmunns.com/wire-format.html), which writes the fields one
//! after the other.
//!
//! They are encoded in this crate, for all that write and read them: such code is generic, and would be compiled anew in each of
//! those crates.

use crate::{Answer, Query, Summary};

/// A value that is written with Postcard, between others.
pub trait Encode: Sized {
    /// Appends the value to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// Takes a value from the front of `bytes`; `None` if there is none.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

macro_rules! encode {
    ($($value:ty),*) => {$(
        impl Encode for $value {
            fn encode(&self, out: &mut Vec<u8>) {
                // Writing to a vector can't fail.
                out.extend(postcard::to_allocvec(self).unwrap_or_default());
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
                *bytes = rest;
                Some(value)
            }
        }
    )*};
}

encode!(Answer, Query, Summary);
