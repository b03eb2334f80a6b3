//! The strings with a meaning in a snapshot. They are interned first, so that each has a fixed number and keys are
//! compared as integers.

use trace::event::Action;
use trace::frames::{StrId, Symbols};

macro_rules! keywords {
    ($($name:ident = $text:literal),* $(,)?) => {
        // Only numbers the keywords; number 0 is the empty string.
        #[allow(clippy::upper_case_acronyms, non_camel_case_types, dead_code)]
        #[repr(u32)]
        enum Number { EMPTY, $($name),* }
        // Most actions are recognized by their range.
        $(#[allow(dead_code)] pub(crate) const $name: StrId = StrId(Number::$name as u32);)*
        const KEYWORDS: &[&str] = &[$($text),*];
    };
}

keywords! {
    // Actions, in the order of their codes.
    ALLOC = "alloc",
    FREE_REQUESTED = "free_requested",
    FREE_COMPLETED = "free_completed",
    SEGMENT_ALLOC = "segment_alloc",
    SEGMENT_FREE = "segment_free",
    SEGMENT_MAP = "segment_map",
    SEGMENT_UNMAP = "segment_unmap",
    OOM = "oom",
    SNAPSHOT = "snapshot",
    USER_DEFINED = "user_defined",
    ANNOTATE = "annotate",
    // Keys of trace entries.
    ACTION = "action",
    ADDR = "addr",
    ADDRESS = "address",
    DEVICE_FREE = "device_free",
    SIZE = "size",
    STREAM = "stream",
    TIME_US = "time_us",
    COMPILE_CONTEXT = "compile_context",
    USER_METADATA = "user_metadata",
    POOL_ID = "pool_id",
    FRAMES = "frames",
    CPP_FRAMES = "cpp_frames",
    // Keys of frames.
    NAME = "name",
    FILENAME = "filename",
    LINE = "line",
    // Keys of segments and blocks.
    DEVICE = "device",
    TOTAL_SIZE = "total_size",
    SEGMENT_TYPE = "segment_type",
    SEGMENT_POOL_ID = "segment_pool_id",
    IS_EXPANDABLE = "is_expandable",
    BLOCKS = "blocks",
    STATE = "state",
    REQUESTED_SIZE = "requested_size",
    HISTORY = "history",
    SMALL = "small",
    ACTIVE_ALLOCATED = "active_allocated",
    ACTIVE_PENDING_FREE = "active_pending_free",
    ACTIVE_AWAITING_FREE = "active_awaiting_free",
    INACTIVE = "inactive",
    // Top-level keys.
    SEGMENTS = "segments",
    DEVICE_TRACES = "device_traces",
    ALLOCATOR_SETTINGS = "allocator_settings",
    EXTERNAL_ANNOTATIONS = "external_annotations",
    HOST_SEGMENTS = "host_segments",
    HOST_TRACES = "host_traces",
    // Annotations.
    STAGE = "stage",
    START = "START",
    END = "END",
    // Settings.
    CONF = "PYTORCH_CUDA_ALLOC_CONF",
    MAX_SPLIT_SIZE = "max_split_size",
    GARBAGE_COLLECTION_THRESHOLD = "garbage_collection_threshold",
    EXPANDABLE_SEGMENTS = "expandable_segments",
    ROUNDUP_POWER2_DIVISIONS = "roundup_power2_divisions",
}

/// Returns a symbol table with the keywords at their numbers.
pub(crate) fn symbols() -> Symbols {
    let mut symbols = Symbols::default();
    for keyword in KEYWORDS {
        symbols.intern(keyword.as_bytes());
    }
    symbols
}

/// Returns the action with this name; [`Action::Other`] for an unknown name.
#[inline]
pub(crate) fn action(name: StrId) -> Action {
    // ALLOC is number 1: the empty string wraps to a code that is no action.
    match name.0.wrapping_sub(ALLOC.0) {
        code if code <= ANNOTATE.0 - ALLOC.0 => Action::from_code((code & 0xff) as u8),
        _ => Action::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_has_its_number() {
        let mut symbols = symbols();
        assert_eq!(symbols.intern(b"alloc"), ALLOC);
        assert_eq!(symbols.intern(b"roundup_power2_divisions"), ROUNDUP_POWER2_DIVISIONS);
        for kind in Action::ALL {
            let id = symbols.intern(kind.name().as_bytes());
            assert_eq!(action(id), kind, "{}", kind.name());
        }
        assert_eq!(action(StrId(0)), Action::Other);
    }
}
