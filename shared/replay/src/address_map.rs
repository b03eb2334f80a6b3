//! A hash map by address.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are addresses.
pub(super) type AddressMap<V> = HashMap<u64, V, BuildHasherDefault<AddressHasher>>;

/// Hashes one address. Blocks are multiples of 512 bytes and segments of 2 MiB, so that the low bits of an address are
/// mostly 0. `FxHasher` hashes in 32 bits where pointers have 32, as in WebAssembly, and leaves the low bits as they
/// are: most addresses collided there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    #[inline]
    fn write_u64(&mut self, address: u64) {
        // Fibonacci hashing: the high bits of the product depend on all bits of the address.
        let product = (self.0 ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn addresses_do_not_collide_in_32_bits() {
        for step in [512, 2 << 20, 20 << 20] {
            let hash = |i: u64| {
                let mut hasher = AddressHasher::default();
                hasher.write_u64(0x7f20_0000_0000 + i * step);
                hasher.finish() as u32
            };
            // The place in a table of twice the size, and the seven bits that a table compares first.
            let places: HashSet<u32> = (0..4_096).map(|i| hash(i) % 8_192).collect();
            assert!(places.len() > 3_000, "{step}: {}", places.len());
            let tags: HashSet<u32> = (0..4_096).map(|i| hash(i) >> 25).collect();
            assert!(tags.len() > 120, "{step}: {}", tags.len());
        }
    }
}
