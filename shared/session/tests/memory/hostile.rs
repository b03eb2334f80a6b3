//! Recordings that are small on the wire and claim much: one for each way to make a reader allocate.

use format::{Header, Kind, Writer, seal};
use rmp::encode;

/// A kind of recording.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> Vec<u8>,
    /// How many bytes of memory a reader of the whole file may need for each unpacked byte.
    pub(crate) per_byte: usize,
}

/// Every construction.
pub(crate) const ALL: &[Hostile] = &[
    Hostile { name: "a state that never ends", make: endless_state, per_byte: 1 },
    Hostile { name: "states of many devices that never end", make: endless_states, per_byte: 1 },
    Hostile { name: "pieces of a state without blocks", make: empty_pieces, per_byte: 2 },
    Hostile { name: "states that differ, an event between two", make: states_in_turn, per_byte: 2 },
    Hostile { name: "segments with a block each, as one state", make: state_of_segments, per_byte: 16 },
    Hostile { name: "allocations that are never freed", make: allocations, per_byte: 44 },
    Hostile { name: "segments with a block each, event by event", make: segments, per_byte: 72 },
    Hostile { name: "thousands of devices", make: devices, per_byte: 32 },
    Hostile { name: "tags", make: tags, per_byte: 20 },
    Hostile { name: "tags whose chunk is lost", make: lost_tags, per_byte: 1 },
    Hostile { name: "strings", make: strings, per_byte: 10 },
    Hostile { name: "frames", make: frames, per_byte: 10 },
    Hostile { name: "stacks that share one frame", make: stacks, per_byte: 8 },
    Hostile { name: "marks", make: marks, per_byte: 8 },
    Hostile { name: "statistics of many devices", make: statistics, per_byte: 9 },
    Hostile { name: "times of many devices, without values", make: outside, per_byte: 12 },
    Hostile { name: "devices in the header, again and again", make: header_devices, per_byte: 2 },
    Hostile { name: "settings in the header", make: header_settings, per_byte: 2 },
];

/// The number of pieces of a state that never becomes whole.
const ENDLESS: u64 = 1 << 60;

/// A MessagePack map under construction.
struct Map(Vec<u8>);

impl Map {
    fn of(entries: u32) -> Self {
        let mut bytes = Vec::new();
        encode::write_map_len(&mut bytes, entries).unwrap();
        Self(bytes)
    }

    fn number(mut self, key: &str, number: u64) -> Self {
        encode::write_str(&mut self.0, key).unwrap();
        encode::write_uint(&mut self.0, number).unwrap();
        self
    }

    fn column(mut self, key: &str, column: &[u8]) -> Self {
        encode::write_str(&mut self.0, key).unwrap();
        encode::write_bin(&mut self.0, column).unwrap();
        self
    }

    fn array(mut self, key: &str, items: u32, item: &[u8]) -> Self {
        encode::write_str(&mut self.0, key).unwrap();
        encode::write_array_len(&mut self.0, items).unwrap();
        self.0.extend(item.repeat(items as usize));
        self
    }

    fn chunk(&self, kind: Kind) -> Vec<u8> {
        seal(kind as u8, &self.0)
    }
}

/// Returns a recording that begins with an ordinary header.
fn recording(chunks: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::new(&Header::default(), &mut bytes);
    chunks.into_iter().for_each(|chunk| bytes.extend(chunk));
    bytes
}

fn varint(bytes: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
}

fn varints(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    numbers.into_iter().for_each(|n| varint(&mut bytes, n));
    bytes
}

/// The head of a piece: a segment at an address, with so many blocks.
fn piece(address: u64, size: u64, is_continued: bool, blocks: u64) -> Vec<u8> {
    varints([address, size, 0, if is_continued { 4 } else { 0 }, 0, 0, 0, blocks])
}

fn state(device: u64, (at, of, from): (u64, u64, u64), heads: &[u8], blocks: &[u8]) -> Vec<u8> {
    let map = Map::of(6).number("device", device).number("at", at).number("of", of).number("from", from);
    map.column("segments", heads).column("blocks", blocks).chunk(Kind::Segments)
}

/// Blocks of one byte, each of them allocated.
fn blocks(count: u64) -> Vec<u8> {
    [0, 1, 0, 0, 0].repeat(count as usize)
}

const PIECE_BLOCKS: u64 = 1 << 14;

fn endless_state() -> Vec<u8> {
    let part = |from: u64| {
        let heads: Vec<u8> = (from..from + 8).flat_map(|i| piece(1 << 40, 1 << 30, i > 0, PIECE_BLOCKS)).collect();
        state(0, (0, ENDLESS, from), &heads, &blocks(8 * PIECE_BLOCKS))
    };
    recording((0..12).map(|i| part(8 * i)))
}

fn endless_states() -> Vec<u8> {
    let part =
        |device| state(device, (0, ENDLESS, 0), &piece(1 << 40, 1 << 30, false, PIECE_BLOCKS), &blocks(PIECE_BLOCKS));
    recording((0..100).map(part))
}

fn empty_pieces() -> Vec<u8> {
    const PIECES: u64 = 1 << 16;
    let heads = vec![0; 8 * PIECES as usize];
    recording((0..8).map(|i| state(0, (0, ENDLESS, i * PIECES), &heads, &[])))
}

fn states_in_turn() -> Vec<u8> {
    let one = |at: u64| {
        let address = (1 << 40) + (at % 2) * (1 << 32);
        let heads: Vec<u8> = (0..4).flat_map(|i| piece(address, 1 << 30, i > 0, PIECE_BLOCKS)).collect();
        [state(0, (at, 4, 0), &heads, &blocks(4 * PIECE_BLOCKS)), alloc_chunk(0, at, 1, 1 << 50)].concat()
    };
    recording((0..16).map(one))
}

fn state_of_segments() -> Vec<u8> {
    // Native segments of a large pool, which have an index of their own.
    const SEGMENTS: u64 = 1 << 15;
    let heads: Vec<u8> = (0..SEGMENTS).flat_map(|i| piece(i << 25, 1 << 25, false, 1)).collect();
    recording((0..3).map(|i| state(0, (i, SEGMENTS, 0), &heads, &blocks(SEGMENTS))))
}

/// Events of so many allocations, 512 bytes apart.
fn alloc_chunk(device: u64, first: u64, count: usize, start: u64) -> Vec<u8> {
    let mut address = varints([(start >> 9) << 2]);
    address.extend(vec![4; count - 1]);
    events_chunk(device, first, &vec![0; count], &address, &vec![0; count])
}

fn events_chunk(device: u64, first: u64, action: &[u8], address: &[u8], size: &[u8]) -> Vec<u8> {
    let map = Map::of(6).number("device", device).number("first", first).column("action", action);
    let map = map.column("address", address).column("size", size);
    map.column("time", &vec![0; action.len()]).chunk(Kind::Events)
}

fn allocations() -> Vec<u8> {
    const COUNT: u64 = 1 << 17;
    recording((0..4).map(|i| alloc_chunk(0, i * COUNT, COUNT as usize, (1 << 40) + i * COUNT * 512)))
}

fn segments() -> Vec<u8> {
    const COUNT: u64 = 1 << 14;
    let chunk = |i: u64| {
        // A segment of 32 MiB, and an allocation at its address.
        let (mut address, mut size) = (Vec::new(), Vec::new());
        for n in 0..COUNT {
            let at = if n == 0 { (i * COUNT) << 25 } else { 1 << 25 };
            address.extend(varints([(at >> 9) << 2, 0]));
            size.extend(varints([1 << 26, (1 << 26) - 1]));
        }
        events_chunk(0, 2 * i * COUNT, &[3, 0].repeat(COUNT as usize), &address, &size)
    };
    recording((0..4).map(chunk))
}

fn devices() -> Vec<u8> {
    recording((0..5_000).map(|device| alloc_chunk(device, 0, 1, 1 << 40)))
}

fn symbols(from: &str, first: u64, column: &str, bytes: &[u8]) -> Vec<u8> {
    Map::of(2).number(from, first).column(column, bytes).chunk(Kind::Symbols)
}

fn tags() -> Vec<u8> {
    const COUNT: u64 = 1 << 16;
    let chunk = |i: u64| {
        let tags: Vec<u8> =
            (i * COUNT..(i + 1) * COUNT).flat_map(|n| varints([n & 127, 1, n >> 7, 0, 0, 0, 0])).collect();
        symbols("tags_from", i * COUNT, "tags", &tags)
    };
    recording((0..6).map(chunk))
}

fn lost_tags() -> Vec<u8> {
    recording([symbols("tags_from", (1 << 20) - 1, "tags", &[0; 7])])
}

fn strings() -> Vec<u8> {
    const COUNT: u64 = 1 << 16;
    let chunk = |i: u64| {
        let texts: Vec<u8> =
            (i * COUNT..(i + 1) * COUNT).flat_map(|n| [n as u8, (n >> 8) as u8, (n >> 16) as u8]).collect();
        let map =
            Map::of(3).number("strings_from", 1 + i * COUNT).column("string_lengths", &[3].repeat(COUNT as usize));
        map.column("strings", &texts).chunk(Kind::Symbols)
    };
    recording((0..6).map(chunk))
}

fn frames() -> Vec<u8> {
    const COUNT: u64 = 1 << 16;
    let chunk = |i: u64| {
        let frames: Vec<u8> = (i * COUNT..(i + 1) * COUNT).flat_map(|n| varints([0, 0, n])).collect();
        symbols("frames_from", i * COUNT, "frames", &frames)
    };
    recording((0..6).map(chunk))
}

fn stacks() -> Vec<u8> {
    // Each is one frame longer than the one before.
    let stacks: Vec<u8> =
        (1..1_400_u64).flat_map(|depth| [varints([depth]), vec![0; depth as usize]].concat()).collect();
    let once = vec![0; 1 << 19];
    let first = [symbols("frames_from", 0, "frames", &[0; 3]), symbols("stacks_from", 1, "stacks", &stacks)];
    // And empty ones, a byte each.
    recording(first.into_iter().chain((0..4).map(|i| symbols("stacks_from", 1_400 + (i << 19), "stacks", &once))))
}

fn marks() -> Vec<u8> {
    let column = vec![0; 3 << 17];
    recording((0..12).map(|i| Map::of(2).number("device", i % 4).column("marks", &column).chunk(Kind::Marks)))
}

fn statistics() -> Vec<u8> {
    let column = vec![2; 1 << 17];
    let chunk = |i| Map::of(2).number("device", i).column("samples", &column).chunk(Kind::Statistics);
    recording((0..32).map(chunk))
}

fn outside() -> Vec<u8> {
    let times = vec![2; 1 << 16];
    recording((0..16).map(|i| Map::of(2).number("device", i).column("time", &times).chunk(Kind::Outside)))
}

fn header_devices() -> Vec<u8> {
    let map = (0..500).fold(Map::of(500), |map, _| map.array("devices", 1_024, &[0x80]));
    recording([map.chunk(Kind::Header)])
}

fn header_settings() -> Vec<u8> {
    let mut settings = Map::of(1);
    encode::write_str(&mut settings.0, "settings").unwrap();
    settings.0.extend(Map::of(1).array("as_written", 1 << 19, &[0x92, 0xa0, 0xa0]).0);
    recording([settings.chunk(Kind::Header)])
}
