//! Allocator operations from arbitrary bytes, for property tests and the fuzzer.

use allocator::PoolOptions;

/// An operation. `pick` selects among existing objects; streams, threads and ids are small numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Op {
    Malloc {
        size: u64,
        stream: i64,
        thread: u64,
    },
    Free {
        pick: usize,
    },
    /// Frees with the stream that the caller assumes.
    FreeOn {
        pick: usize,
        stream: i64,
    },
    /// Frees an address that may not be allocated.
    FreeAt {
        address: u64,
    },
    RecordStream {
        pick: usize,
        stream: i64,
    },
    Hold {
        stream: i64,
    },
    Release {
        stream: i64,
    },
    Synchronize,
    CurrentStream {
        stream: i64,
    },
    EmptyCache,
    Fraction {
        fraction: f64,
    },
    Config {
        text: &'static str,
    },
    Capacity {
        bytes: u64,
    },
    FailNext {
        calls: u64,
    },
    CreatePool {
        id: u64,
        options: PoolOptions,
    },
    SetPoolOptions {
        id: u64,
        options: PoolOptions,
    },
    ReleasePool {
        id: u64,
    },
    EmptyPool {
        id: u64,
    },
    BeginPool {
        id: u64,
        thread: u64,
    },
    BeginCapture {
        id: u64,
        stream: i64,
    },
    EndPool {
        id: u64,
    },
    PoolContext {
        id: Option<u64>,
    },
    ResetPeaks,
    Snapshot,
}

/// Settings that interact.
const CONFIGS: [&str; 16] = [
    "",
    "expandable_segments:True",
    "expandable_segments:False",
    "max_split_size_mb:21",
    "max_split_size_mb:40,expandable_segments:True",
    "max_split_size_mb:30,max_non_split_rounding_mb:21",
    "garbage_collection_threshold:0.3",
    "garbage_collection_threshold:0.8,max_split_size_mb:25",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:2,64:16,>:1]",
    "large_segment_size_mb:40,expandable_segments:True",
    "large_segment_size_mb:11",
    "graph_capture_record_stream_reuse:True",
    "throw_on_cudamalloc_oom:True",
    "expandable_segments_reserve:0.1,expandable_segments:True",
    "max_split_size_mb:no number",
];

/// Bytes of an operation.
const WIDTH: usize = 4;

/// Decodes the operations.
pub(super) fn operations(bytes: &[u8]) -> impl Iterator<Item = Op> {
    bytes.as_chunks::<WIDTH>().0.iter().map(|&bytes| operation(bytes))
}

fn operation([kind, a, b, c]: [u8; WIDTH]) -> Op {
    let stream = i64::from(a % 3);
    let id = u64::from(a % 4);
    let thread = u64::from(a >> 7);
    let pick = usize::from(u16::from_le_bytes([b, c]));
    let options = PoolOptions { use_on_oom: b & 1 == 1, no_split: b & 2 == 2, has_allocator: b & 12 == 12 };
    // Requests and frees are most of what a program does.
    match kind {
        0..=89 => Op::Malloc { size: size(b, c), stream, thread },
        90..=169 => Op::Free { pick },
        170..=173 => Op::FreeOn { pick, stream },
        174..=175 => Op::FreeAt { address: (u64::from(a) << 39) + (u64::from(b) << 20) + u64::from(c) },
        176..=191 => Op::RecordStream { pick, stream },
        192..=195 => Op::Hold { stream },
        196..=199 => Op::Release { stream },
        200..=201 => Op::Synchronize,
        202..=205 => Op::CurrentStream { stream },
        206..=209 => Op::EmptyCache,
        210..=213 => Op::Fraction { fraction: f64::from(a) / 250.0 },
        214..=221 => Op::Config { text: CONFIGS[usize::from(a) % CONFIGS.len()] },
        222..=223 => Op::Capacity { bytes: u64::from(a) << 20 },
        224..=226 => Op::FailNext { calls: u64::from(a % 5) },
        227..=230 => Op::CreatePool { id, options },
        231..=232 => Op::SetPoolOptions { id, options },
        233..=236 => Op::ReleasePool { id },
        237..=238 => Op::EmptyPool { id },
        239..=242 => Op::BeginPool { id, thread },
        243..=245 => Op::BeginCapture { id, stream: i64::from(b % 3) },
        246..=250 => Op::EndPool { id },
        251 => Op::PoolContext { id: (a & 64 == 0).then_some(id) },
        252 => Op::ResetPeaks,
        _ => Op::Snapshot,
    }
}

/// Returns sizes around each threshold, and a few that nothing can hold.
pub(super) fn size(class: u8, value: u8) -> u64 {
    const MIB: u64 = 1 << 20;
    let value = u64::from(value);
    match class % 16 {
        0..=3 => value * 5,
        4..=6 => value << 12,
        7 => MIB - 512 + value * 4,
        8..=9 => MIB + (value << 14),
        10 => 10 * MIB - 512 + value * 4,
        11 => 20 * MIB - 512 + value * 4,
        12..=13 => value << 18,
        14 => (1 << (value % 64)) + value / 64,
        _ => u64::MAX - (value << (value % 50)),
    }
}
