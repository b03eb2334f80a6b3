//! Every bound in the program, with its default and its reason.

/// Bounds on one import. All are far above what real files hold, and low enough that a hostile file is refused
/// before it hurts.
#[derive(Clone, Copy, Debug)]
pub struct ImportLimits {
    /// Decompressed bytes of one file. The largest snapshots seen are a few GiB.
    pub plain_bytes: u64,
    /// Decompressed over compressed bytes, looked at once [`Self::ratio_grace_bytes`] have come out. Real snapshots
    /// compress 15 to 40 times; a deflate bomb reaches 1,030, a zstd bomb 30,000.
    pub ratio: u64,
    /// Decompressed bytes below which no ratio is looked at: short files of one repeated entry are harmless.
    pub ratio_grace_bytes: u64,
    /// Length of one string. Frame names of C++ templates reach some tens of KiB.
    pub string_bytes: usize,
    /// Bytes of all distinct strings together.
    pub strings_total_bytes: usize,
    /// Memo slots, containers and distinct values: one trace entry makes up to three. Below 2^28, so that a slot
    /// stays four bytes.
    pub items: usize,
    /// Values on the machine's stack at once, 16 bytes each. Python's pickler fills lists by the thousand; the C++ one
    /// in one go, and then the whole trace of a device stands there.
    pub stack_items: usize,
    /// Open marks at once. A real snapshot nests six deep.
    pub depth: usize,
    /// Values kept outside the trace, 16 bytes each: a block has about 13, an annotation 9. Enough for a million
    /// blocks.
    pub kept_values: usize,
    /// Bytes of the integer opcodes that carry a length: 2^63 needs 9, and nothing in a snapshot is larger.
    pub integer_bytes: usize,
    /// Frames of one stack. PyTorch itself gathers some hundreds.
    pub stack_frames: usize,
    /// Frames of all distinct stacks together, four bytes each. The largest files seen have some hundred thousand.
    pub stacks_total_frames: usize,
    /// Bytes of the memory in which lists of frames are remembered as they stand in a pickle, to know them again.
    pub remembered_bytes: usize,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self {
            plain_bytes: 64 << 30,
            ratio: 500,
            ratio_grace_bytes: 64 << 20,
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
        }
    }
}

/// Bounds on what one server holds for its clients.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Connections at once; more wait in the kernel's queue. A browser opens six.
    pub connections: usize,
    /// Bytes of a request's line and headers together. A browser sends about one KiB.
    pub head_bytes: usize,
    /// Seconds within which a request's head must have come, idle waiting between requests included.
    pub head_seconds: u64,
    /// Seconds that open connections are given to end when the server is told to stop.
    pub drain_seconds: u64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { connections: 256, head_bytes: 16 << 10, head_seconds: 30, drain_seconds: 2 }
    }
}

/// Bytes of a link's fragment. Browsers and chat programs cut longer addresses anyway.
pub const LINK_BYTES: usize = 16 << 10;

/// Terms of one kind in a link: more chips than a person puts up.
pub const LINK_TERMS: usize = 64;

/// Entries in the trace of one run of a workload: at 33 bytes each, 1.7 GB. The stories that ship make a hundredth of
/// that.
pub const RUN_EVENTS: usize = 50_000_000;
