//! An allocator's settings in the words of a snapshot.

use crate::allocator::{AllocatorConfig, Profile};
use crate::trace::Settings;

/// The settings as a snapshot of the profile's release records them (`allocator_settings`), in its order. What PyTorch
/// leaves out there (`large_segment_size_mb`, `max_non_split_rounding_mb`, the memory fraction) shows in the string
/// that was set alone.
pub fn settings(config: &AllocatorConfig, profile: &Profile) -> Settings {
    let max_split_size = (config.max_split_size < i64::MAX as u64).then_some(config.max_split_size);
    let bool = |value: bool| if value { "True" } else { "False" }.to_owned();
    let divisions = config.roundup_power2_divisions.iter().enumerate();
    let divisions: Vec<String> = divisions.map(|(class, n)| format!("{}:{n}", 1_u32 << class)).collect();
    let mut as_written = vec![
        ("PYTORCH_CUDA_ALLOC_CONF", config.conf.clone()),
        ("max_split_size", max_split_size.map_or("-1".to_owned(), |bytes| bytes.to_string())),
        ("garbage_collection_threshold", format!("{:?}", config.garbage_collection_threshold)),
        ("expandable_segments", bool(config.expandable_segments)),
        ("pinned_num_register_threads", config.pinned_num_register_threads.to_string()),
        ("release_lock_on_cudamalloc", bool(config.release_lock_on_cudamalloc)),
        ("pinned_use_cuda_host_register", bool(config.pinned_use_cuda_host_register)),
        ("graph_capture_record_stream_reuse", bool(config.graph_capture_record_stream_reuse)),
        ("roundup_power2_divisions", divisions.join(", ")),
    ];
    as_written.retain(|(name, _)| !profile.unknown_settings.contains(name));
    Settings {
        conf: config.conf.clone(),
        max_split_size,
        expandable_segments: config.expandable_segments,
        garbage_collection_threshold: config.garbage_collection_threshold,
        roundup_power2_divisions: config.roundup_power2_divisions,
        as_written: as_written.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}
