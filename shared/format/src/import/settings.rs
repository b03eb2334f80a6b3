//! Reads the allocator's settings of a snapshot.

use crate::values::keywords;
use crate::values::{Kind, Value};
use crate::values::{SnapshotBuilder, entries};
use trace::Divisions;
use trace::Settings;
use trace::decimal::Decimal;

/// Reads `allocator_settings`.
pub(super) fn settings(builder: &mut SnapshotBuilder, value: Value) -> Settings {
    let mut settings = Settings::default();
    let Some(pairs) = builder.dict(value) else { return settings };
    for (key, value) in entries(&pairs) {
        match key {
            keywords::CONF => {
                if let Some(text) = value.str() {
                    settings.conf = builder.symbols.unshown(text).into_owned();
                }
            }
            // -1 means unlimited.
            keywords::MAX_SPLIT_SIZE => settings.max_split_size = value.size().filter(|&size| size < i64::MAX as u64),
            keywords::EXPANDABLE_SEGMENTS => settings.expandable_segments = value.int() == Some(1),
            keywords::GARBAGE_COLLECTION_THRESHOLD => {
                settings.garbage_collection_threshold = match value {
                    Value::Float(threshold) => threshold,
                    other => other.int().unwrap_or(0) as f64,
                };
            }
            keywords::ROUNDUP_POWER2_DIVISIONS => settings.roundup_power2_divisions = divisions(builder, value),
            _ => {}
        }
        let written = written(builder, value);
        settings.as_written.push((builder.symbols.unshown(key).into_owned(), written));
    }
    settings
}

/// Reads a dict from size classes ('1', '2', '4', … '32768', in MiB) to numbers of divisions.
fn divisions(builder: &SnapshotBuilder, value: Value) -> Divisions {
    let mut table = [0; 16];
    for (key, value) in entries(builder.dict_entries(value)) {
        let class: Option<u64> = builder.symbols.unshown(key).parse().ok();
        let slot = class.and_then(|mib| table.get_mut(mib.checked_ilog2()? as usize));
        if let (Some(slot), Some(Ok(divisions))) = (slot, value.int().map(u64::try_from)) {
            *slot = divisions;
        }
    }
    table
}

/// Formats a floating-point number as Python prints it. Settings have few digits; longer numbers are rounded to six
/// places.
fn float(f: f64) -> String {
    match Decimal::exact(f) {
        Some(decimal) => decimal.to_string(),
        None if f.is_nan() => "NaN".to_owned(),
        None if f.is_infinite() => if f > 0.0 { "inf" } else { "-inf" }.to_owned(),
        None => format!("≈ {}", Decimal::of(f, 6)),
    }
}

/// Formats a setting as Python prints it. Settings are nested at most one dict deep.
fn written(builder: &SnapshotBuilder, value: Value) -> String {
    let scalar = |value: Value| match value {
        Value::None => "None".to_owned(),
        Value::Bool(b) => if b { "True" } else { "False" }.to_owned(),
        Value::Int(n) => n.to_string(),
        Value::Big(n) => n.to_string(),
        Value::Float(f) => float(f),
        Value::Str(text) => builder.symbols.unshown(text).into_owned(),
        _ => "…".to_owned(),
    };
    match value {
        Value::Node(id) if matches!(builder.kind(id), Kind::Dict(_) | Kind::EmptyDict) => {
            let entry = |(key, value)| format!("{}:{}", builder.symbols.unshown(key), scalar(value));
            entries(builder.dict_entries(value)).map(entry).collect::<Vec<_>>().join(", ")
        }
        value => scalar(value),
    }
}
