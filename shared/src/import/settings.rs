//! The allocator's settings, as a snapshot records them.

use super::fold::{Fold, entries};
use super::value::{Kind, Value};
use super::words;
use crate::decimal::Decimal;
use crate::trace::Divisions;
use crate::trace::Settings;

/// Reads `allocator_settings`.
pub(super) fn settings(fold: &mut Fold, value: Value) -> Settings {
    let mut settings = Settings::default();
    let Some(pairs) = fold.dict(value) else { return settings };
    for (key, value) in entries(&pairs) {
        match key {
            words::CONF => {
                if let Some(text) = value.str() {
                    settings.conf = fold.symbols.text(text).into_owned();
                }
            }
            // -1 is unlimited.
            words::MAX_SPLIT_SIZE => settings.max_split_size = value.size().filter(|&size| size < i64::MAX as u64),
            words::EXPANDABLE_SEGMENTS => settings.expandable_segments = value.int() == Some(1),
            words::GARBAGE_COLLECTION_THRESHOLD => {
                settings.garbage_collection_threshold = match value {
                    Value::Float(threshold) => threshold,
                    other => other.int().unwrap_or(0) as f64,
                };
            }
            words::ROUNDUP_POWER2_DIVISIONS => settings.roundup_power2_divisions = divisions(fold, value),
            _ => {}
        }
        let written = written(fold, value);
        settings.as_written.push((fold.symbols.text(key).into_owned(), written));
    }
    settings
}

/// A dict from size classes ('1', '2', '4', … '32768', in MiB) to numbers of divisions.
fn divisions(fold: &Fold, value: Value) -> Divisions {
    let mut table = [0; 16];
    for (key, value) in entries(fold.dict_entries(value)) {
        let class: Option<u64> = fold.symbols.text(key).parse().ok();
        let slot = class.and_then(|mib| table.get_mut(mib.checked_ilog2()? as usize));
        if let (Some(slot), Some(Ok(divisions))) = (slot, value.int().map(u64::try_from)) {
            *slot = divisions;
        }
    }
    table
}

/// A real number as Python prints it. Those of settings are a few digits long; what needs more is told to six places.
fn float(f: f64) -> String {
    match Decimal::exact(f) {
        Some(decimal) => decimal.to_string(),
        None if f.is_nan() => "NaN".to_owned(),
        None if f.is_infinite() => if f > 0.0 { "inf" } else { "-inf" }.to_owned(),
        None => format!("≈ {}", Decimal::of(f, 6)),
    }
}

/// A setting as Python prints it. What is nested deeper than one dict is no setting.
fn written(fold: &Fold, value: Value) -> String {
    let scalar = |value: Value| match value {
        Value::None => "None".to_owned(),
        Value::Bool(b) => if b { "True" } else { "False" }.to_owned(),
        Value::Int(n) => n.to_string(),
        Value::Big(n) => n.to_string(),
        Value::Float(f) => float(f),
        Value::Str(text) => fold.symbols.text(text).into_owned(),
        _ => "…".to_owned(),
    };
    match value {
        Value::Node(id) if matches!(fold.kind(id), Kind::Dict(_) | Kind::EmptyDict) => {
            let entry = |(key, value)| format!("{}:{}", fold.symbols.text(key), scalar(value));
            entries(fold.dict_entries(value)).map(entry).collect::<Vec<_>>().join(", ")
        }
        value => scalar(value),
    }
}
