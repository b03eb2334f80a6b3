//! The error of an encoding that doesn't fail.

use std::fmt::{Display, Formatter, Result};

use serde::de::{Expected, Unexpected};
use serde::{de, ser};

/// An error that there is none of, so that the compiler leaves out whatever would handle it.
#[derive(Debug)]
pub(super) enum Never {}

impl Display for Never {
    fn fmt(&self, _: &mut Formatter<'_>) -> Result {
        match *self {}
    }
}

impl std::error::Error for Never {}

impl ser::Error for Never {
    fn custom<T: Display>(_: T) -> Self {
        unsupported()
    }
}

impl de::Error for Never {
    fn custom<T: Display>(_: T) -> Self {
        unsupported()
    }

    // Called for each type, so not by way of the above with a text.
    fn invalid_value(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        unsupported()
    }

    fn invalid_length(_: usize, _: &dyn Expected) -> Self {
        unsupported()
    }
}

/// Ends the program: a type was given to an encoding that it doesn't work with. Never depends on the bytes that are read.
#[cold]
pub(super) fn unsupported() -> ! {
    unreachable!("a type checks what it is read from, or needs what this encoding doesn't have")
}
