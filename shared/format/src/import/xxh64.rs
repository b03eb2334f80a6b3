//! XXH64, the checksum of zstd frames, with seed 0: <https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md>.

const PRIMES: [u64; 5] =
    [0x9e37_79b1_85eb_ca87, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0x85eb_ca77_c2b2_ae63, 0x27d4_eb2f_1656_67c5];
/// Bytes of a stripe: eight for each lane.
const STRIPE: usize = 32;

/// Sums up bytes that are added in pieces of any size.
#[derive(Debug)]
pub(super) struct Xxh64 {
    lanes: [u64; 4],
    /// The beginning of an incomplete stripe.
    held: [u8; STRIPE],
    held_len: usize,
    total: u64,
}

impl Xxh64 {
    pub(super) const fn new() -> Self {
        let lanes = [PRIMES[0].wrapping_add(PRIMES[1]), PRIMES[1], 0, 0_u64.wrapping_sub(PRIMES[0])];
        Self { lanes, held: [0; STRIPE], held_len: 0, total: 0 }
    }

    /// Adds bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.total = self.total.wrapping_add(bytes.len() as u64);
        let mut rest = bytes;
        if self.held_len > 0 {
            let (more, after) = rest.split_at(rest.len().min(STRIPE - self.held_len));
            if let Some(to) = self.held.get_mut(self.held_len..self.held_len + more.len()) {
                to.copy_from_slice(more);
            }
            self.held_len += more.len();
            rest = after;
            if self.held_len < STRIPE {
                return;
            }
            let held = self.held;
            self.stripe(&held);
            self.held_len = 0;
        }
        let (stripes, tail) = rest.as_chunks::<STRIPE>();
        stripes.iter().for_each(|stripe| self.stripe(stripe));
        if let Some(to) = self.held.get_mut(..tail.len()) {
            to.copy_from_slice(tail);
        }
        self.held_len = tail.len();
    }

    fn stripe(&mut self, stripe: &[u8; STRIPE]) {
        for (lane, word) in self.lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }

    /// Returns the sum.
    pub(super) fn finish(&self) -> u64 {
        let [a, b, c, d] = self.lanes;
        let mut sum = if self.total < STRIPE as u64 {
            PRIMES[4]
        } else {
            let sum = [(a, 1), (b, 7), (c, 12), (d, 18)]
                .iter()
                .fold(0_u64, |sum, (lane, by)| sum.wrapping_add(lane.rotate_left(*by)));
            let merge = |sum: u64, lane: &u64| (sum ^ round(0, *lane)).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]);
            self.lanes.iter().fold(sum, merge)
        };
        sum = sum.wrapping_add(self.total);
        let (words, rest) = self.held.get(..self.held_len).unwrap_or(&[]).as_chunks::<8>();
        for word in words {
            sum ^= round(0, u64::from_le_bytes(*word));
            sum = sum.rotate_left(27).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]);
        }
        let (halves, rest) = rest.as_chunks::<4>();
        for half in halves {
            sum ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(PRIMES[0]);
            sum = sum.rotate_left(23).wrapping_mul(PRIMES[1]).wrapping_add(PRIMES[2]);
        }
        for &byte in rest {
            sum ^= u64::from(byte).wrapping_mul(PRIMES[4]);
            sum = sum.rotate_left(11).wrapping_mul(PRIMES[0]);
        }
        sum = (sum ^ sum >> 33).wrapping_mul(PRIMES[1]);
        sum = (sum ^ sum >> 29).wrapping_mul(PRIMES[2]);
        sum ^ sum >> 32
    }
}

const fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_reference_whatever_the_pieces() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1_000).collect();
        // As the reference implementation (xxhsum 0.8, `-H1`) gives them for the first so many bytes.
        let cases = [
            (0, 0xef46_db37_51d8_e999_u64),
            (1, 0xe934_a84a_db05_2768),
            (3, 0xe5c7_bb45_33bc_65dd),
            (4, 0xffce_d860_4453_cc1e),
            (8, 0x884a_1736_14b8_1b8d),
            (31, 0xc346_d2b5_9b4d_8ee1),
            (32, 0xcbf5_9c51_16ff_32b4),
            (33, 0x0c53_5d1a_cafb_8ead),
            (63, 0xe26a_a9e2_a95f_8e4f),
            (64, 0xf7c6_7301_db67_13f0),
            (100, 0x6ac1_e580_3216_6597),
            (1_000, 0x6ef4_36b0_0eba_4078),
        ];
        for (length, want) in cases {
            for piece in [1, 7, 31, 32, 33, 1_000] {
                let mut sum = Xxh64::new();
                bytes[..length].chunks(piece).for_each(|piece| sum.update(piece));
                assert_eq!(sum.finish(), want, "{length} bytes in pieces of {piece}");
            }
        }
        let mut sum = Xxh64::new();
        sum.update(b"abc");
        assert_eq!(sum.finish(), 0x44bc_2cf5_ad77_0999);
    }
}
