//! The cells of the address map, and the codes that they are drawn from.

/// The uses of memory that a heatmap distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// In an allocated block.
    Allocated = 0,
    /// In a block that waits for a stream: it was freed, and is not free with the next event.
    Waiting = 1,
    /// In a usable gap (see [`super::requests`]).
    Usable = 2,
    /// In a gap that is too small to be usable.
    Unusable = 3,
    /// Not reserved.
    Unmapped = 4,
}

impl Use {
    /// All uses, by number.
    pub const ALL: [Self; 5] = [Self::Allocated, Self::Waiting, Self::Usable, Self::Unusable, Self::Unmapped];
    /// The uses in the order of precedence: where a cell has several, it is drawn and described by the first.
    pub const PRECEDENCE: [Self; 5] = [Self::Unusable, Self::Waiting, Self::Usable, Self::Allocated, Self::Unmapped];
}

/// A cell that is taken together with others: the same rows at other positions.
pub(super) trait Cell: Copy {
    /// The cell of no position.
    const NONE: Self;
    /// Adds the cell of other positions, which come later.
    fn merge(&mut self, later: &Self);
    /// Sets its position, if it has one: the state that it was made from is still that of `position`.
    fn set_position(&mut self, _position: u32) {}
}

/// The bytes of a row by [`Use`].
pub(super) type Bytes = [u64; Use::ALL.len()];

/// A cell that can be made of the bytes of a row at one position.
pub(super) trait AddressCell: Cell {
    /// Returns the cell of one position of a row of `whole` bytes.
    fn at(bytes: &Bytes, whole: u64, position: u32) -> Self;
}

/// The largest share of each use over the positions of a cell, from 0 to 255.
///
/// A share is rounded up, so that a single byte counts: it is 0 only if the use never occurs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares(pub [u8; Use::ALL.len()]);

impl Cell for Shares {
    const NONE: Self = Self([0; Use::ALL.len()]);

    fn merge(&mut self, later: &Self) {
        for (own, other) in self.0.iter_mut().zip(later.0) {
            *own = (*own).max(other);
        }
    }
}

impl AddressCell for Shares {
    #[inline]
    fn at(bytes: &Bytes, whole: u64, _: u32) -> Self {
        Self(bytes.map(|bytes| match bytes {
            0 => 0,
            bytes if bytes >= whole => u8::MAX,
            bytes => bytes.saturating_mul(u64::from(u8::MAX)).div_ceil(whole) as u8,
        }))
    }
}

/// The most bytes of each use over the positions of a cell, each with the first position that has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peaks(pub [(u64, u32); Use::ALL.len()]);

impl Cell for Peaks {
    const NONE: Self = Self([(0, u32::MAX); Use::ALL.len()]);

    fn merge(&mut self, later: &Self) {
        for (own, other) in self.0.iter_mut().zip(later.0) {
            if other.0 > own.0 {
                *own = other;
            }
        }
    }

    fn set_position(&mut self, position: u32) {
        self.0.iter_mut().for_each(|own| own.1 = position);
    }
}

impl AddressCell for Peaks {
    fn at(bytes: &Bytes, _: u64, position: u32) -> Self {
        Self(bytes.map(|bytes| (bytes, position)))
    }
}

/// The weights of the colours of a cell, in fifteenths, four bits each: allocated in the lowest, then usable, waiting
/// and unusable. What is missing to 15 is the background.
///
/// # Precedence
/// A cell stands for many states, and its shares are the largest of each use: together they may exceed the whole. They
/// are laid over each other, and what is rare and matters lies on top, so that a gap of one event is never hidden by
/// what was there before and after:
/// 1. the base: allocated and unmapped, by their shares;
/// 2. usable gaps, as opaque as their share;
/// 3. memory that waits for a stream, likewise;
/// 4. unusable gaps, likewise.
///
/// Each of the last three is at least [`Tone::LEAST`] of 255 opaque if it occurs at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tone(pub u16);

impl Tone {
    /// The least opacity of what is laid over the base.
    pub const LEAST: u8 = 48;

    /// Returns the tone of a cell.
    pub fn of(shares: Shares) -> Self {
        let [allocated, waiting, usable, unusable, unmapped] = shares.0;
        let opacity = |share: u8| if share == 0 { 0.0 } else { f32::from(share.max(Self::LEAST)) / 255.0 };
        let ground = f32::from(allocated) + f32::from(unmapped);
        let mut rest = 1.0;
        let mut left = 15_u16;
        let mut code = 0;
        for (share, shift) in [(unusable, 12), (waiting, 8), (usable, 4)] {
            let weight = rest * opacity(share);
            rest -= weight;
            // A hidden layer may get less than a fifteenth, what lies on top never does.
            let parts = fifteenths(weight).min(left);
            left -= parts;
            code |= parts << shift;
        }
        let weight = if ground > 0.0 { rest * f32::from(allocated) / ground } else { 0.0 };
        Self(code | fifteenths(weight).min(left))
    }

    /// Returns the weight of a use; 0 for [`Use::Unmapped`], which is the background.
    pub const fn weight(self, usage: Use) -> u16 {
        let shift = match usage {
            Use::Allocated => 0,
            Use::Usable => 4,
            Use::Waiting => 8,
            Use::Unusable => 12,
            Use::Unmapped => return 0,
        };
        (self.0 >> shift) & 15
    }
}

/// Returns a weight in fifteenths, to the nearest. Rounding by a cast is many times faster than `round`.
fn fifteenths(weight: f32) -> u16 {
    (weight * 15.0 + 0.5) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_byte_is_a_share_and_all_bytes_are_all() {
        let share = |bytes, whole: u64| Shares::at(&[bytes, 0, 0, 0, 0], whole, 0).0[0];
        assert_eq!(share(0, 1 << 40), 0);
        assert_eq!(share(1, 1 << 40), 1);
        assert_eq!(share(1 << 39, 1 << 40), 128);
        for whole in [1, 3, 512, 12_345, 35_651_584, 1 << 40, (1 << 40) + 7] {
            assert_eq!(share(whole, whole), 255, "{whole}");
            let edges = (0..=255).map(|n| whole / 255 * n);
            for bytes in edges.flat_map(|edge| edge.saturating_sub(2)..=edge + 2).filter(|bytes| *bytes < whole) {
                assert_eq!(u64::from(share(bytes, whole)), (bytes * 255).div_ceil(whole), "{bytes} of {whole}");
            }
        }
    }

    #[test]
    fn what_is_rare_lies_on_top() {
        let tone = |allocated, waiting, usable, unusable, unmapped| {
            Tone::of(Shares([allocated, waiting, usable, unusable, unmapped]))
        };
        let cases = [
            ("only allocated", tone(255, 0, 0, 0, 0), 0x000f),
            ("never reserved", tone(0, 0, 0, 0, 255), 0x0000),
            ("half reserved, all of it allocated", tone(128, 0, 0, 0, 127), 0x0008),
            ("half cached at all times", tone(127, 0, 128, 0, 0), 0x0087),
            ("all cached at one moment", tone(255, 0, 255, 0, 0), 0x00f0),
            ("one byte unusable at one moment", tone(255, 0, 0, 1, 0), 0x300c),
            ("unusable over waiting over usable", tone(255, 255, 255, 128, 0), 0x8700),
            ("outside of the trace", Tone::of(Shares::NONE), 0x0000),
        ];
        for (name, Tone(got), want) in cases {
            assert_eq!(got, want, "{name}: {got:#06x}");
        }
    }

    #[test]
    fn weights_never_exceed_the_whole() {
        let steps = [0, 1, 47, 48, 100, 128, 200, 255];
        for allocated in steps {
            for waiting in steps {
                for usable in steps {
                    for unusable in steps {
                        let tone = Tone::of(Shares([allocated, waiting, usable, unusable, 10]));
                        let sum: u16 = Use::ALL.into_iter().map(|usage| tone.weight(usage)).sum();
                        assert!(sum <= 15, "{tone:?}");
                        assert_eq!(unusable > 0, tone.weight(Use::Unusable) > 0);
                    }
                }
            }
        }
    }
}
