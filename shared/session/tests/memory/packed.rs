//! Files that are small when compressed and expand to much: one for each way to make a reader take memory or time.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use format::{prelude, seal};

/// A kind of compressed file.
pub(crate) struct Packed {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> Vec<u8>,
}

/// Every construction. Each has less than 256 KiB.
pub(crate) const ALL: &[Packed] = &[
    Packed { name: "values on the stack", make: || gzip(&[b"\x80\x04](", &b"N".repeat(90 << 20)[..]].concat()) },
    Packed { name: "lists", make: || gzip(&[b"\x80\x04](", &b"]".repeat(90 << 20)[..]].concat()) },
    Packed { name: "lists in the memo", make: || gzip(&[b"\x80\x04](", &b"]\x940".repeat(30 << 20)[..]].concat()) },
    Packed { name: "entries", make: entries },
    Packed { name: "JSON lists", make: || gzip(&[b"[", &b"[0],".repeat(20 << 20)[..]].concat()) },
    Packed { name: "a window of zstd", make: || zstd(0x88, 1_000, &[]) },
    Packed { name: "frames of zstd with large windows", make: || zstd_frames(3_000) },
    Packed { name: "a recording", make: || gzip(&recording()) },
    Packed { name: "members without contents", make: || gzip(b"").repeat(12_000) },
    Packed { name: "frames without contents", make: || zstd(0x58, 0, &[]).repeat(28_000) },
    Packed { name: "blocks without contents", make: || zstd(0x58, 0, &raw(b"").repeat(80_000)) },
];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Entries with names from the memo, as short as they can be.
fn entries() -> Vec<u8> {
    let text = |text: &str, slot: u8| [&[0x8c, text.len() as u8], text.as_bytes(), b"q", &[slot, b'0']].concat();
    let mut bytes = [b"\x80\x04".to_vec(), text("action", 1), text("alloc", 2), text("size", 3)].concat();
    bytes.extend([b"}(\x8c\x0ddevice_traces](](".to_vec(), b"}(h\x01h\x02h\x03K\x09u".repeat(7 << 20)].concat());
    gzip(&bytes)
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    [&((bytes.len() as u32) << 3).to_le_bytes()[..3], bytes].concat()
}

/// Returns a frame with a window, so many blocks that repeat a byte, and these last blocks.
fn zstd(window: u8, blocks: usize, last: &[u8]) -> Vec<u8> {
    let head = [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, window][..], &raw(b"\x80\x04]")].concat();
    let repeated = [&((128_u32 << 10 << 3) | 1 << 1).to_le_bytes()[..3], b"0"].concat();
    [head, repeated.repeat(blocks), last.to_vec(), vec![1, 0, 0]].concat()
}

fn zstd_frames(count: usize) -> Vec<u8> {
    // A window of 128 MiB, and the padding of a pickle.
    zstd(0x88, 0, &[]).repeat(count)
}

/// A recording of chunks that unpack to what is allowed for its length, and are themselves alike.
fn recording() -> Vec<u8> {
    let count = 1 << 17;
    let mut map = vec![0x84];
    for (name, byte) in [("action", 0), ("address", 4), ("size", 0), ("time", 0)] {
        map.push(0xa0 | name.len() as u8);
        map.extend(name.as_bytes());
        map.push(0xc6);
        map.extend((count as u32).to_be_bytes());
        map.extend(vec![byte; count]);
    }
    // Bytes that can't be packed, in a chunk that is skipped: they raise what may be unpacked, and gzip packs them.
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(8 << 10)
    .collect();
    let pair = [seal(3, &map), seal(99, &noise)].concat();
    [prelude().to_vec(), pair.repeat(400)].concat()
}
