//! The line that PyTorch's out-of-memory error begins with, whole.

use shared::allocator::{OutOfMemory, Profile};

/// The first line of the error's text. `in_use` is what the process holds of the device, in bytes.
pub(super) fn out_of_memory(oom: &OutOfMemory, in_use: u64, is_expandable: bool, profile: &Profile) -> String {
    let text = oom.to_string();
    // What only the driver and the settings can tell stands in two places that the allocator leaves out.
    let text = text.replacen("GPU has", "GPU 0 has", 1);
    let (head, tail) = text.split_once(" is free. ").unwrap_or((&text, ""));
    let advice = profile.oom_advice(is_expandable);
    let in_use = OutOfMemory::size(in_use);
    format!("{head} is free. Including non-PyTorch memory, this process has {in_use} memory in use. {tail} {advice}")
}
