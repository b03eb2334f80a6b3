//! Every bound in the program, with its default and its reason.

/// Bounds on one import. All are far above what real files hold, and low enough that a hostile file is refused
/// before it hurts.
#[derive(Clone, Copy, Debug)]
pub struct ImportLimits {
    /// Decompressed bytes of one file. The largest snapshots seen are a few GiB.
    pub plain_bytes: u64,
    /// Decompressed over compressed bytes, looked at once [`Self::ratio_grace_bytes`] have come out. Real snapshots
    /// compress 15 to 40 times; deflate itself stops at about 1,030.
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
    /// Values on the machine's stack at once: one unfinished list or dict of a real file holds at most some thousands.
    pub stack_items: usize,
    /// Open marks at once. A real snapshot nests six deep.
    pub depth: usize,
    /// Values kept of keys that are not known: enough for settings and annotations.
    pub kept_values: usize,
    /// Bytes of the integer opcodes that carry a length: 2^63 needs 9, and nothing in a snapshot is larger.
    pub integer_bytes: usize,
    /// Frames of one stack. PyTorch itself gathers some hundreds.
    pub stack_frames: usize,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self {
            plain_bytes: 64 << 30,
            ratio: 2_000,
            ratio_grace_bytes: 64 << 20,
            string_bytes: 1 << 20,
            strings_total_bytes: 1 << 30,
            items: (1 << 28) - 1,
            stack_items: 1 << 22,
            depth: 1_000,
            kept_values: 1 << 22,
            integer_bytes: 256,
            stack_frames: 65_536,
        }
    }
}
