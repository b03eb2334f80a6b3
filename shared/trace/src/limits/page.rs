//! Limits of what the page holds, asks for, and takes from others.

use super::ImportLimits;

/// Bytes of a URL that a link asks the page to open. Signed URLs of object stores have about two thousand.
pub const ADDRESS_BYTES: usize = 8_192;

/// Bytes of a trace that another site hands to the page in a message. It is in the memory of both pages at once.
pub const MESSAGE_BYTES: u64 = 2 << 30;

/// Characters of the name of a trace that another site hands to the page.
pub const NAME_CHARS: usize = 200;

/// Sites that may hand traces to the page without asking again. The oldest is forgotten.
pub const TRUSTED_SITES: usize = 64;

/// Bytes of the largest file that the page copies into the browser for a later visit. Larger files are opened from
/// where they are, if the browser hands out a handle for them.
pub const RECENT_COPY_BYTES: u64 = 512 << 20;

/// Bytes of all such copies together. The oldest are deleted first.
pub const RECENT_COPIES_BYTES: u64 = 2 << 30;

/// Recently opened files that the page lists.
pub const RECENT_FILES: usize = 20;

/// Steps that Back can take in the page. Browsers keep fewer entries of their own: Chromium about fifty.
pub const HISTORY_STEPS: usize = 100;

/// Limits of a page that watches a job.
#[derive(Clone, Copy, Debug)]
pub struct LiveLimits {
    /// Events of all devices together, some 65 bytes each with all indexes: a quarter of a GiB. Beyond this limit the
    /// older half is removed. From three quarters of it on, the newer half is held twice.
    pub events: usize,
    /// Marks of one device, 16 bytes each, and samples of its statistics, 32 bytes each. Beyond this limit the older
    /// half of the marks is removed, and samples are merged in pairs.
    pub marks: usize,
    /// Bytes that were read and wait to be added to the session: twice what a busy second brings. Beyond this limit they
    /// are added at once and not at the next refresh.
    pub pending_bytes: usize,
    /// Bytes of memory for the whole session: four times what its events take at their limit. A recording that needs
    /// more, as one whose recorded states contradict its events again and again, is no longer read.
    pub bytes: usize,
    /// The limits of chunks and names. Names are never removed, so only these limit them.
    pub import: ImportLimits,
}

impl Default for LiveLimits {
    fn default() -> Self {
        let import = ImportLimits::default();
        Self { events: 4_000_000, marks: 1 << 18, pending_bytes: 64 << 20, bytes: 1 << 30, import }
    }
}

/// Bytes of a link's fragment. Browsers and chat programs cut longer addresses.
pub const LINK_BYTES: usize = 16 << 10;

/// Rows of one list of lines: more than a person reads. The rest is summed.
pub const LINE_ROWS: usize = 1_000;

/// Lines of a run that the page compares. `vramscope diff` compares any number.
pub const PROFILED_LINES: usize = 20_000;

/// Stacks of a run, or one for each category of it, whose difference from another run is drawn.
pub const COMPARED_STACKS: usize = 100_000;

/// Rows of one answer about the table of allocations: several screens.
pub const ALLOCATION_ROWS: usize = 1_000;

/// Terms of one kind in a link: more than a person uses.
pub const LINK_TERMS: usize = 64;

/// The most pins of a view. More flags would cover each other, and their colours could not be told apart.
pub const LINK_PINS: usize = 5;

/// Characters of a pin's name: what fits on a flag. Five such names are a fortieth of [`LINK_BYTES`] in ASCII.
pub const LINK_PIN_CHARS: usize = 48;

/// Boxes in the zoom path of a link's flame graph, one for each frame of a stack: deeper than almost any stack, and at
/// most a third of [`LINK_BYTES`].
pub const LINK_ZOOMS: usize = 512;

/// The most transforms of a flame graph, also in a link: more than a person keeps track of. Each visits all stacks.
pub const FLAME_TRANSFORMS: usize = 16;

/// Rules that a person adds to those that fold frames. Each is compared with each distinct frame.
pub const FOLDING_PARTS: usize = 64;

/// Bytes of a part of a path in such a rule.
pub const FOLDING_PART_BYTES: usize = 256;

/// Steps in one answer: more than a screen has columns, and a few MB as a message.
pub const STEPS: usize = 50_000;

/// The most rows in each group of a list of matches. People look through such a list and do not read it to its end.
pub const FOUND_ROWS: u32 = 500;

/// The user's own rules that decide categories. Their numbers share a byte with those of the built-in rules.
pub const CATEGORY_RULES: usize = 200;

/// Columns of a heatmap: more than any screen has. Each takes a few kilobytes while it is kept.
pub const HEATMAP_COLUMNS: u32 = 1 << 14;

/// Rows of a heatmap: as many as a tall screen has pixels.
pub const HEATMAP_ROWS: u32 = 1 << 12;

/// Cells of a heatmap: 20 MB while they are kept. A view of 2,560 by 1,440 pixels has 1.8 million.
pub const HEATMAP_CELLS: u32 = 1 << 22;
