//! The CRC-32 of gzip, which chunks of the recording format and messages of the wire carry too.

pub use crc32fast::{Hasher as Checksum, hash as of};

#[cfg(test)]
mod tests {
    #[test]
    fn the_sum_is_that_of_gzip() {
        assert_eq!(super::of(b"123456789"), 0xcbf4_3926);
    }
}
