//! The allocator's settings as values (`CUDAAllocatorConfig`).

use super::rounding::{Divisions, LARGE_BUFFER};

/// Every setting that the native allocator has. Sizes are bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatorConfig {
    /// The string that was set last.
    pub conf: String,
    /// Blocks from this size on are never split; `u64::MAX` is unlimited.
    pub max_split_size: u64,
    /// A block that is never split serves requests that are smaller than it by less than this.
    pub max_non_split_rounding: u64,
    /// Share of the limit from which on cached blocks are given back by age; 0 is off.
    pub garbage_collection_threshold: f64,
    /// Steps between two powers of two that requests are rounded to.
    pub roundup_power2_divisions: Divisions,
    /// Whether segments grow.
    pub expandable_segments: bool,
    /// The segment for requests between 1 and 10 MiB, and the page of expandable segments of large pools.
    pub large_segment_size: u64,
    /// Share of the device's memory that this process may take, where the settings string says one.
    pub per_process_memory_fraction: Option<f64>,
    /// Whether blocks that several streams used are used again within a capture.
    pub graph_capture_record_stream_reuse: bool,
    /// Whether the lock is released around `cudaMalloc`. It changes no decision of one thread.
    pub release_lock_on_cudamalloc: bool,
    /// Whether a request above the limit fails before anything is given back (torch 2.12 and later).
    pub throw_on_cudamalloc_oom: bool,
    /// `pinned_use_cuda_host_register`: of the host's allocator, kept to be shown.
    pub pinned_use_cuda_host_register: bool,
    /// `pinned_num_register_threads`: of the host's allocator, kept to be shown.
    pub pinned_num_register_threads: u64,
}

impl Default for AllocatorConfig {
    fn default() -> Self {
        Self {
            conf: String::new(),
            max_split_size: u64::MAX,
            max_non_split_rounding: LARGE_BUFFER,
            garbage_collection_threshold: 0.0,
            roundup_power2_divisions: [0; 16],
            expandable_segments: false,
            large_segment_size: LARGE_BUFFER,
            per_process_memory_fraction: None,
            graph_capture_record_stream_reuse: false,
            release_lock_on_cudamalloc: false,
            throw_on_cudamalloc_oom: false,
            pinned_use_cuda_host_register: false,
            pinned_num_register_threads: 1,
        }
    }
}

/// shim
#[derive(Debug, serde::Serialize)]
#[serde(untagged)]
pub enum Setting {
    /// s
    Str(String),
    /// i
    Int(i64),
    /// f
    Float(f64),
    /// b
    Bool(bool),
    /// d
    Dict(std::collections::BTreeMap<String, u64>),
}
impl AllocatorConfig {
    /// shim
    pub fn from_conf(conf: &str, profile: &'static super::Profile) -> Result<Self, super::ConfigError> {
        let mut config = Self::default();
        super::parse(conf, profile, &mut config)?;
        Ok(config)
    }
    /// shim
    pub fn written(&self, profile: &super::Profile) -> Vec<(&'static str, Setting)> {
        let mut list = vec![
            ("PYTORCH_CUDA_ALLOC_CONF", Setting::Str(self.conf.clone())),
            ("max_split_size", Setting::Int(self.max_split_size as i64)),
            ("garbage_collection_threshold", Setting::Float(self.garbage_collection_threshold)),
            ("expandable_segments", Setting::Bool(self.expandable_segments)),
            ("pinned_num_register_threads", Setting::Int(1)),
            ("release_lock_on_cudamalloc", Setting::Bool(self.release_lock_on_cudamalloc)),
            ("pinned_use_cuda_host_register", Setting::Bool(false)),
        ];
        if profile.torch != "2.6" {
            list.push(("graph_capture_record_stream_reuse", Setting::Bool(self.graph_capture_record_stream_reuse)));
        }
        if profile.torch == "2.15" {
            list.push(("max_round_threshold", Setting::Int(-1)));
            list.push(("max_cached_size", Setting::Int(-1)));
        }
        let d = self.roundup_power2_divisions.iter().enumerate().map(|(i, v)| ((1u64 << i).to_string(), *v)).collect();
        list.push(("roundup_power2_divisions", Setting::Dict(d)));
        list
    }
}
