//! The list form of `roundup_power2_divisions`: `[64:8,256:4,>:1]`.

use super::error::ConfigError;
use trace::Divisions;

/// A list of divisions while it is read.
pub(super) struct DivisionList<'a> {
    divisions: &'a mut Divisions,
    /// Whether `>` also sets the entry of the last boundary.
    rest_overwrites_last: bool,
    /// Whether no boundary has been read yet.
    is_first: bool,
    /// The last boundary's entry.
    last: usize,
}

/// A boundary or value is not a power of two. Each parser has its own message for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoPowerOfTwo;

impl<'a> DivisionList<'a> {
    pub(super) fn new(divisions: &'a mut Divisions, rest_overwrites_last: bool) -> Self {
        Self { divisions, rest_overwrites_last, is_first: true, last: 0 }
    }

    /// Sets everything after the last boundary, for the key `>`.
    pub(super) fn set_rest(&mut self, value: u64) {
        let from = if self.rest_overwrites_last { self.last } else { self.last + 1 };
        self.divisions.iter_mut().skip(from).for_each(|entry| *entry = value);
    }

    /// Sets the entry of a boundary. The first one also fills all entries below; gaps between two boundaries are not
    /// filled.
    pub(super) fn set(&mut self, mebibytes: u64, value: u64) -> Result<(), NoPowerOfTwo> {
        if !mebibytes.is_power_of_two() {
            return Err(NoPowerOfTwo);
        }
        self.last = (mebibytes.ilog2() as usize).min(self.divisions.len() - 1);
        let from = if self.is_first { 0 } else { self.last };
        self.is_first = false;
        self.divisions.iter_mut().take(self.last + 1).skip(from).for_each(|entry| *entry = value);
        Ok(())
    }
}

impl NoPowerOfTwo {
    /// Returns the message for a wrong boundary, which is the same in all releases; `raise` creates the release's
    /// exception.
    pub(super) fn boundary(self, raise: fn(&'static str) -> ConfigError) -> ConfigError {
        raise("For roundups, the intervals have to be power of 2 ")
    }
}
