//! Limits of what is read from files, and of what is written into them.

use super::server::{STATE_BYTES, ServerLimits};

/// Limits of one import. They are far above what real files need, and low enough to refuse a hostile file before it
/// does harm.
#[derive(Clone, Copy, Debug)]
pub struct ImportLimits {
    /// Decompressed bytes of one file. The largest known snapshots have a few GiB.
    pub plain_bytes: u64,
    /// The ratio of decompressed to compressed bytes, checked beyond [`Self::ratio_grace_bytes`]. It bounds the time, not
    /// the memory: real pickles have 15 to 75, but JSON repeats every frame of a stack in words, and zstd makes it two
    /// thousand times smaller. A deflate bomb reaches 1,030, a zstd bomb 30,000.
    pub ratio: u64,
    /// Decompressed bytes below which the ratio is not checked: they take a second at most.
    pub ratio_grace_bytes: u64,
    /// The ratio of the memory that reading takes to the compressed bytes, checked beyond [`Self::memory_grace_bytes`].
    /// Real snapshots take at most 60 times as much, in any format; a byte of a bomb can take 16,000.
    pub memory_ratio: u64,
    /// Bytes of memory that any compressed file may take: those of a million entries.
    pub memory_grace_bytes: u64,
    /// Length of one string. Frame names of C++ templates reach a few tens of KiB.
    pub string_bytes: usize,
    /// Total bytes of all distinct strings.
    pub strings_total_bytes: usize,
    /// Memo slots, containers and distinct values: one trace entry makes up to three. Below 2^28, so that a slot takes
    /// four bytes.
    pub items: usize,
    /// Values on the pickle machine's stack at once, 16 bytes each. Python's pickler appends to lists by the thousand;
    /// the C++ pickler appends all at once, so that the whole trace of a device is on the stack.
    pub stack_items: usize,
    /// Open marks at once. A real snapshot nests six deep.
    pub depth: usize,
    /// Values kept outside the trace, 16 bytes each: a block has roughly 13, an annotation 9. Enough for a million
    /// blocks.
    pub kept_values: usize,
    /// Bytes of integer opcodes with a length: 2^63 needs 9, and no number in a snapshot is larger.
    pub integer_bytes: usize,
    /// Frames of one stack. PyTorch gathers some hundreds.
    pub stack_frames: usize,
    /// Total frames of all distinct stacks, four bytes each. The largest known files have a few hundred thousand.
    pub stacks_total_frames: usize,
    /// Bytes of the cache in which a pickle's lists of frames are recognized when they are repeated.
    pub remembered_bytes: usize,
    /// Bytes of one chunk of a recording, packed and unpacked. Writers begin another chunk at roughly 1 MiB; only the
    /// state of a segment with a few hundred thousand blocks needs more.
    pub chunk_bytes: usize,
    /// The ratio of unpacked to packed bytes of a recording, checked beyond [`Self::recording_grace_bytes`]. Writers stay
    /// below it, however regular the events: see [`RECORDING_RATIO`].
    pub recording_ratio: u64,
    /// Unpacked bytes of a recording below which the ratio is not checked. An unpacked byte can take eight of memory.
    pub recording_grace_bytes: u64,
    /// Names (strings, frames, stacks, tags) of a recording in damaged chunks: each takes four bytes.
    pub lost_symbols: usize,
    /// Devices of one recording, far above what any machine has. Each takes roughly a kilobyte.
    pub devices: usize,
    /// Distinct frames of a recording, some 30 bytes each with the table in which they are looked up. Twice as many as a
    /// recorder writes ([`super::RecorderLimits::frames`]).
    pub frames: usize,
    /// Tags of a recording, some 80 bytes each with the table in which they are looked up: one for each second of seven
    /// weeks.
    pub tags: usize,
    /// Bytes of memory for the parts of one device's state until all of them have come: four million blocks.
    pub unfinished_device_bytes: usize,
    /// Bytes of memory for all such parts of a recording. A writer completes the state of one device before that of the
    /// next.
    pub unfinished_bytes: usize,
    /// Samples of the memory outside the allocators of all devices together, 72 bytes each. Beyond this limit the
    /// samples of the device that gets more are merged in pairs: see [`OUTSIDE_SAMPLES`].
    pub outside_samples: usize,
    /// Bytes of memory for everything that a [`tracker::Tracker`] keeps. It reads nothing more that would exceed
    /// them.
    pub tracked_bytes: usize,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self {
            plain_bytes: 64 << 30,
            ratio: 500,
            ratio_grace_bytes: 64 << 20,
            memory_ratio: 256,
            memory_grace_bytes: 32 << 20,
            string_bytes: 1 << 20,
            strings_total_bytes: 1 << 30,
            items: (1 << 28) - 1,
            stack_items: 1 << 25,
            depth: 1_000,
            kept_values: 1 << 24,
            integer_bytes: 256,
            stack_frames: 65_536,
            stacks_total_frames: 1 << 26,
            remembered_bytes: 32 << 20,
            chunk_bytes: 16 << 20,
            recording_ratio: 64,
            recording_grace_bytes: 2 * RECORDING_GRACE_BYTES,
            lost_symbols: 1 << 22,
            devices: 1_024,
            frames: 1 << 23,
            tags: 1 << 22,
            unfinished_device_bytes: 128 << 20,
            unfinished_bytes: 256 << 20,
            outside_samples: 1 << 22,
            tracked_bytes: ServerLimits::tracked_bytes(STATE_BYTES),
        }
    }
}

impl ImportLimits {
    /// Returns the most bytes of memory that reading `packed` bytes of a compressed file may take.
    pub fn memory(&self, packed: u64) -> u64 {
        packed.saturating_mul(self.memory_ratio).max(self.memory_grace_bytes)
    }

    /// Returns the most unpacked bytes that the first `packed` bytes of a recording may have.
    pub fn unpacked(&self, packed: u64) -> u64 {
        packed.saturating_mul(self.recording_ratio).max(self.recording_grace_bytes).min(self.plain_bytes)
    }
}

/// Members of a gzip file, or frames of a zstd file, that may be empty. Each takes some 20 µs.
pub const PACKED_PARTS: u64 = 4_096;

/// Bytes that each further member or frame must hold on average. Programs that compress in parts make one for every
/// 64 KiB at least.
pub const PACKED_PART_BYTES: u64 = 1 << 10;

/// The largest ratio of unpacked to packed bytes that a writer of recordings produces: below
/// [`ImportLimits::recording_ratio`], so that no reader refuses its file. A chunk that would exceed it is stored
/// unpacked.
pub const RECORDING_RATIO: u64 = 48;

/// Unpacked bytes up to which a writer of recordings ignores the ratio: half of what readers allow.
pub const RECORDING_GRACE_BYTES: u64 = 4 << 20;

/// Lost names of each kind that references can distinguish, some 60 bytes of memory each: far more than a chunk of
/// names has. Further ones count as one.
pub const LOST_NAMES: usize = 1 << 20;

/// The most names and values of settings that a header may hold. PyTorch has about twenty settings.
pub const HEADER_SETTINGS: u32 = 1_024;

/// The most faults of the original file that the header of a copy may hold.
pub const HEADER_FAULTS: u32 = 16;

/// The most devices that a header may name.
pub const HEADER_DEVICES: u32 = 1_024;

/// Samples of the memory outside the allocator in one chunk of a recording. A writer that follows a job writes about
/// ten.
pub const CHUNK_OUTSIDE_SAMPLES: usize = 1 << 16;

/// Samples of the memory outside one device's allocator, 72 bytes each: twelve days at one a second. Beyond this limit,
/// samples are merged in pairs.
pub const OUTSIDE_SAMPLES: usize = 1 << 20;

/// Events in one chunk of a recording: a few hundred KiB, which unpack in a millisecond.
pub const CHUNK_EVENTS: usize = 1 << 14;

/// Unpacked bytes of one preview of a recording, which a reader unpacks before it knows the rest: ten times what the writer
/// makes. In memory they take up to twelve times as much.
pub const PREVIEW_PART_BYTES: usize = 2 << 20;

/// Unpacked bytes of all previews of a recording that a reader keeps.
pub const PREVIEWS_BYTES: usize = 32 << 20;

/// Previews that follow the first one: two axes of 24 devices with all levels of detail.
pub const PREVIEW_PLACES: usize = 1_024;

/// Pixel columns of the pictures in a preview: those of a small screen.
pub const PREVIEW_COLUMNS: u32 = 1_024;

/// Pixel rows of the pictures in a preview.
pub const PREVIEW_ROWS: u32 = 512;

/// The first preview of a recording takes at most this part of it, unless [`PREVIEW_LEAST_BYTES`] are more.
pub const PREVIEW_FIRST_SHARE: usize = 32;

/// All previews of a recording except the first take at most this part of it.
pub const PREVIEWS_SHARE: usize = 16;

/// Bytes that the first preview may take of any recording, however short: three quarters of a reader's first request.
pub const PREVIEW_LEAST_BYTES: usize = 48 << 10;

/// Bytes of a sweep's document: ten times those of [`SWEEP_VALUES`] runs.
pub const SWEEP_BYTES: usize = 1 << 20;

/// Parameters besides the swept one in a sweep's document: no workload has as many.
pub const SWEEP_CHOICES: usize = 64;

/// Bytes of one text in a sweep's document: longer settings are no help to a reader.
pub const SWEEP_TEXT_BYTES: usize = 4 << 10;

/// Bytes of a text that is pasted to be explained: a log around an error is less.
pub const PASTED_BYTES: usize = 1 << 20;

/// Bytes of a model's `config.json`: published ones have a few kilobytes.
pub const MODEL_CONFIG_BYTES: usize = 1 << 20;

/// Bytes of a baseline: a hundred runs of some thousand lines.
pub const BASELINE_BYTES: usize = 256 << 20;

/// Bytes of a baseline that is kept on a server: some runs of some thousand lines.
pub const KEPT_BASELINE_BYTES: usize = 16 << 20;

/// Baselines that a server keeps.
pub const BASELINES: usize = 1_000;

/// Bytes of all baselines that a server keeps.
pub const BASELINES_BYTES: u64 = 1 << 30;
