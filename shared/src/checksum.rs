//! The CRC-32 of gzip, which chunks of the trace format and frames of the wire have as well.
//!
//! Native code takes it from `crc32fast`, which uses what the processor has for it. WebAssembly has nothing, and the 16 KiB
//! of tables that the library brings instead would be loaded with the page: there, the same tables are made when they
//! are first needed.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crc32fast::Hasher as Checksum;
#[cfg(target_arch = "wasm32")]
pub(crate) use made::Checksum;

/// The sum of some bytes.
pub(crate) fn of(bytes: &[u8]) -> u32 {
    let mut sum = Checksum::new();
    sum.update(bytes);
    sum.finalize()
}

#[cfg(any(target_arch = "wasm32", test))]
mod made {
    use std::sync::OnceLock;

    /// The polynomial, its bits reversed.
    const POLYNOMIAL: u32 = 0xedb8_8320;

    /// By the number of bytes behind it, and by a byte: what the byte is in the sum.
    type Tables = [[u32; 256]; 16];

    fn tables() -> &'static Tables {
        static TABLES: OnceLock<Box<Tables>> = OnceLock::new();
        TABLES.get_or_init(|| {
            let mut tables = Box::new([[0; 256]; 16]);
            for (byte, entry) in (0..).zip(&mut tables[0]) {
                *entry = (0..8).fold(byte, |sum, _| if sum & 1 == 1 { POLYNOMIAL ^ sum >> 1 } else { sum >> 1 });
            }
            for behind in 1..tables.len() {
                tables[behind] = tables[behind - 1].map(|sum| one_more(sum, 0, &tables[0]));
            }
            tables
        })
    }

    fn one_more(sum: u32, byte: u8, table: &[u32; 256]) -> u32 {
        let [low, ..] = sum.to_le_bytes();
        sum >> 8 ^ table[usize::from(low ^ byte)]
    }

    /// Sums bytes that come in pieces; 16 at a time.
    #[derive(Clone, Debug)]
    pub(crate) struct Checksum(u32);

    impl Default for Checksum {
        fn default() -> Self {
            Self(u32::MAX)
        }
    }

    impl Checksum {
        /// Of no bytes.
        pub(crate) fn new() -> Self {
            Self::default()
        }

        /// Adds bytes.
        pub(crate) fn update(&mut self, bytes: &[u8]) {
            let tables = tables();
            let (blocks, rest) = bytes.as_chunks::<16>();
            for block in blocks {
                let mut block = *block;
                block.iter_mut().zip(self.0.to_le_bytes()).for_each(|(byte, sum)| *byte ^= sum);
                let parts = block.iter().zip(tables.iter().rev());
                self.0 = parts.fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)]);
            }
            self.0 = rest.iter().fold(self.0, |sum, byte| one_more(sum, *byte, &tables[0]));
        }

        /// The sum.
        pub(crate) fn finalize(self) -> u32 {
            !self.0
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_made_is_what_the_library_has(bytes: Vec<u8>, split: prop::sample::Index) {
            let mut made = made::Checksum::new();
            let (head, tail) = bytes.split_at(split.index(bytes.len() + 1));
            made.update(head);
            made.update(tail);
            prop_assert_eq!(made.finalize(), of(&bytes));
        }
    }

    #[test]
    fn the_sum_is_the_one_that_gzip_has() {
        let mut made = made::Checksum::new();
        made.update(b"123456789");
        assert_eq!((made.finalize(), of(b"123456789")), (0xcbf4_3926, 0xcbf4_3926));
    }
}
