//! An allocator's settings in the notation of a snapshot.

use allocator::{AllocatorConfig, Profile, SettingValue};
use trace::Settings;

/// Returns the settings as importing a snapshot of the profile's release would.
pub fn settings(config: &AllocatorConfig, profile: &Profile) -> Settings {
    let as_written = config.settings(profile).into_iter().map(|(name, value)| (name.to_owned(), written(&value)));
    Settings {
        conf: config.conf.clone(),
        max_split_size: (config.max_split_size < i64::MAX as u64).then_some(config.max_split_size),
        expandable_segments: config.expandable_segments,
        garbage_collection_threshold: config.garbage_collection_threshold,
        roundup_power2_divisions: config.roundup_power2_divisions,
        as_written: as_written.collect(),
    }
}

/// Formats a value as Python prints it.
fn written(value: &SettingValue<'_>) -> String {
    match value {
        SettingValue::Text(text) => (*text).to_owned(),
        SettingValue::Whole(number) => number.to_string(),
        SettingValue::Real(number) => format!("{number:?}"),
        SettingValue::Flag(flag) => if *flag { "True" } else { "False" }.to_owned(),
        SettingValue::Divisions(table) => {
            let pairs: Vec<String> = table.pairs().map(|(class, steps)| format!("{class}:{steps}")).collect();
            pairs.join(", ")
        }
    }
}
