//! The line that PyTorch's out-of-memory error begins with, whole.

use shared::allocator::{OutOfMemory, Profile};

/// The first line of the error's text. `in_use` is what the process holds of the device, in bytes.
pub(super) fn out_of_memory(oom: &OutOfMemory, in_use: u64, is_expandable: bool, profile: &Profile) -> String {
    let text = oom.to_string();
    // What only the driver and the settings can tell stands in two places that the allocator leaves out.
    let text = text.replacen("GPU has", "GPU 0 has", 1);
    let (head, tail) = text.split_once(" is free. ").unwrap_or((&text, ""));
    let advice = match oom.short_reserve {
        Some(reserve) => format!(
            "This allocation exceeds the expandable-segment reserve of {} for this stream, and a single allocation \
             cannot span expandable segments. Raise PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve or \
             expandable_segments_reserve_by_class (or unset it) so that a segment is at least {}.",
            OutOfMemory::size(reserve),
            OutOfMemory::size(oom.segment_size)
        ),
        None => profile.oom_advice(is_expandable).to_owned(),
    };
    let in_use = OutOfMemory::size(in_use);
    format!("{head} is free. Including non-PyTorch memory, this process has {in_use} memory in use. {tail} {advice}")
}
