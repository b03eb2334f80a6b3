//! Decoded values: small and `Copy`, whatever they represent.

use trace::decimal::Decimal;
use trace::frames::{FrameId, StackId, StrId};

/// A value on the operand stack, in the memo, or in the arena.
// The tag takes four bytes: with a smaller one the padding is copied byte by byte, which is slower.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub(crate) enum Value {
    /// `None`, `null`.
    None,
    /// A boolean.
    Bool(bool),
    /// A 64-bit signed integer.
    Int(i64),
    /// An integer from 2^63 to 2^64 - 1: an address of a driver other than CUDA's.
    Big(u64),
    /// A floating-point number.
    Float(f64),
    /// A string or bytes.
    Str(StrId),
    /// A pair of integers: a pool's id.
    Pair(u32),
    /// A complete frame.
    Frame(FrameId),
    /// A complete list of frames.
    Stack(StackId),
    /// A row of the trace columns.
    Event(u32),
    /// A list or dict that may still be filled, or is shared by reference: see [`Kind`].
    Node(u32),
    /// A value that can't be represented, such as an integer beyond 64 bits.
    Odd,
}

impl Value {
    /// Returns the value as an address. Negative numbers stand for the upper half, as some drivers print them.
    pub(crate) fn address(self) -> Option<u64> {
        match self {
            Self::Int(n) => Some(n as u64),
            Self::Big(n) => Some(n),
            _ => self.int().map(|n| n as u64),
        }
    }

    /// Returns the value as a number of bytes.
    pub(crate) fn size(self) -> Option<u64> {
        match self {
            Self::Int(n) => u64::try_from(n).ok(),
            Self::Big(n) => Some(n),
            _ => self.int().and_then(|n| u64::try_from(n).ok()),
        }
    }

    /// Returns the value as a signed integer. Floating-point numbers without a fraction count: JSON writers differ.
    pub(crate) fn int(self) -> Option<i64> {
        match self {
            Self::Int(n) => Some(n),
            Self::Bool(b) => Some(i64::from(b)),
            // Beyond 2^53 not every integer is a double, so digits may be lost already.
            Self::Float(f) if f.fract() == 0.0 && f.abs() < 9_007_199_254_740_992.0 => Some(Decimal::of(f, 0).scaled()),
            _ => None,
        }
    }

    /// Returns the value as a string.
    pub(crate) fn str(self) -> Option<StrId> {
        if let Self::Str(id) = self { Some(id) } else { None }
    }
}

/// What a node has become so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A dict without entries.
    EmptyDict,
    /// A list without items.
    EmptyList,
    /// A frame.
    Frame(FrameId),
    /// A list of frames.
    Stack(StackId),
    /// A trace entry, by its row in the columns.
    Event(u32),
    /// A list of trace entries, by its number among such lists.
    Events(u32),
    /// A kept dict, by its slot in the arena.
    Dict(u32),
    /// A kept list, by its slot in the arena.
    List(u32),
    /// A value that was left out.
    Dropped,
}

impl Kind {
    /// Bits of the number beside the kind.
    pub(crate) const BITS: u32 = 28;
    /// The largest number that can stand beside the kind.
    pub(crate) const MAX: u32 = (1 << Self::BITS) - 1;

    /// Packs the kind into four bytes: there may be two nodes for each trace entry. Numbers are below 2^28
    /// (`ImportLimits::items`).
    #[inline]
    pub(crate) fn pack(self) -> u32 {
        let (tag, number) = match self {
            Self::EmptyDict => (0, 0),
            Self::EmptyList => (1, 0),
            Self::Frame(id) => (2, id.0),
            Self::Stack(id) => (3, id.0),
            Self::Event(row) => (4, row),
            Self::Events(list) => (5, list),
            Self::Dict(place) => (6, place),
            Self::List(place) => (7, place),
            Self::Dropped => (8, 0),
        };
        tag << Self::BITS | (number & Self::MAX)
    }

    /// Unpacks what [`Self::pack`] packed.
    #[inline]
    pub(crate) fn unpack(word: u32) -> Self {
        let number = word & Self::MAX;
        match word >> Self::BITS {
            0 => Self::EmptyDict,
            1 => Self::EmptyList,
            2 => Self::Frame(FrameId(number)),
            3 => Self::Stack(StackId(number)),
            4 => Self::Event(number),
            5 => Self::Events(number),
            6 => Self::Dict(number),
            7 => Self::List(number),
            _ => Self::Dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_survives_packing() {
        for kind in [
            Kind::EmptyDict,
            Kind::EmptyList,
            Kind::Frame(FrameId(7)),
            Kind::Stack(StackId(Kind::MAX)),
            Kind::Event(1),
            Kind::Events(2),
            Kind::Dict(3),
            Kind::List(4),
            Kind::Dropped,
        ] {
            assert_eq!(Kind::unpack(kind.pack()), kind);
        }
        assert_eq!(size_of::<Value>(), 16);
    }

    #[test]
    fn numbers_convert_to_the_requested_type() {
        assert_eq!(Value::Int(-1).address(), Some(u64::MAX));
        assert_eq!(Value::Big(1 << 63).address(), Some(1 << 63));
        assert_eq!(Value::Int(-1).size(), None);
        assert_eq!(Value::Float(3.0).size(), Some(3));
        assert_eq!(Value::Float(3.5).int(), None);
        assert_eq!(Value::Float(f64::NAN).int(), None);
        assert_eq!(Value::Str(StrId(1)).size(), None);
    }
}
