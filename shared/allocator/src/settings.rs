//! The settings as a snapshot contains them (`allocator_settings`).

use serde::{Serialize, Serializer};

use super::config::AllocatorConfig;
use super::profile::Profile;
use trace::Divisions;

/// The value of a setting. Serializes as the bare value; divisions serialize as a map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SettingValue<'a> {
    /// The string as given.
    Text(&'a str),
    /// A count, or a size in bytes. Unlimited is -1, because PyTorch writes its `size_t` as a signed number.
    Whole(i64),
    /// A share.
    Real(f64),
    /// On or off.
    Flag(bool),
    /// The number of steps between powers of two.
    Divisions(DivisionTable),
}

/// The divisions as a snapshot contains them: a map from the boundary in MiB, as text, to the number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivisionTable(pub Divisions);

impl DivisionTable {
    /// Returns the pairs in the snapshot's order: `("1", …)`, `("2", …)`, `("4", …)` up to `("32768", …)`.
    pub fn pairs(&self) -> impl Iterator<Item = (String, i64)> + use<> {
        self.0.into_iter().enumerate().map(|(entry, steps)| ((1_u64 << entry).to_string(), steps.cast_signed()))
    }
}

impl Serialize for DivisionTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.pairs())
    }
}

impl AllocatorConfig {
    /// Returns `allocator_settings` of a snapshot: names and values in the order of the release. Settings that the
    /// release does not have are left out.
    pub fn settings(&self, profile: &Profile) -> Vec<(&'static str, SettingValue<'_>)> {
        let has = |key| profile.knows_setting(key);
        let whole = |bytes: u64| SettingValue::Whole(bytes.cast_signed());
        let mut settings = vec![
            ("PYTORCH_CUDA_ALLOC_CONF", SettingValue::Text(&self.conf)),
            ("max_split_size", whole(self.max_split_size)),
            ("garbage_collection_threshold", SettingValue::Real(self.garbage_collection_threshold)),
            ("expandable_segments", SettingValue::Flag(self.expandable_segments)),
            ("pinned_num_register_threads", whole(self.pinned_num_register_threads)),
            ("release_lock_on_cudamalloc", SettingValue::Flag(self.release_lock_on_cudamalloc)),
            ("pinned_use_cuda_host_register", SettingValue::Flag(self.pinned_use_cuda_host_register)),
        ];
        if has("graph_capture_record_stream_reuse") {
            let reuse = SettingValue::Flag(self.graph_capture_record_stream_reuse);
            settings.push(("graph_capture_record_stream_reuse", reuse));
        }
        if has("pinned_max_round_threshold_mb") {
            settings.push(("max_round_threshold", whole(self.pinned_max_round_threshold)));
        }
        if has("pinned_max_cached_size_mb") {
            settings.push(("max_cached_size", whole(self.pinned_max_cached_size)));
        }
        let divisions = SettingValue::Divisions(DivisionTable(self.roundup_power2_divisions));
        settings.push(("roundup_power2_divisions", divisions));
        settings
    }
}
