//! Settings strings, compared with PyTorch's results.
//!
//! `fixtures/settings/RELEASE.jsonl` holds the results of the official binaries of that release. The first line holds
//! the settings without any string, as pairs in the snapshot's order. Every other line is an array: the strings that
//! were set one after the other while the program ran; the error of each, or `"crash"`; which settings differ from the
//! first line afterwards; the error when the first string is set at the start (`null`: none, `"unset"`: not tried,
//! since an environment cannot hold it); and which settings differ then, where that is not the same. The results for
//! all 600 strings are stored for 2.6, 2.11 and 2.15; of the others, a part, mostly of strings that differ from the
//! release before. A string whose effect is undefined may have any result.

use allocator::{AllocatorConfig, ConfigError, Profile, parse};
use proptest::prelude::*;
use serde_json::{Map, Value};

const FIXTURES: [(&str, &str); 12] = [
    ("2.4", include_str!("../fixtures/settings/2.4.jsonl")),
    ("2.5", include_str!("../fixtures/settings/2.5.jsonl")),
    ("2.6", include_str!("../fixtures/settings/2.6.jsonl")),
    ("2.7", include_str!("../fixtures/settings/2.7.jsonl")),
    ("2.8", include_str!("../fixtures/settings/2.8.jsonl")),
    ("2.9", include_str!("../fixtures/settings/2.9.jsonl")),
    ("2.10", include_str!("../fixtures/settings/2.10.jsonl")),
    ("2.11", include_str!("../fixtures/settings/2.11.jsonl")),
    ("2.12", include_str!("../fixtures/settings/2.12.jsonl")),
    ("2.13", include_str!("../fixtures/settings/2.13.jsonl")),
    ("2.14", include_str!("../fixtures/settings/2.14.jsonl")),
    ("2.15", include_str!("../fixtures/settings/2.15.jsonl")),
];

/// Returns the error in the fixture's notation.
fn notation(error: &ConfigError) -> String {
    format!("{}: {error}", error.kind.name())
}

fn settings(config: &AllocatorConfig, profile: &Profile) -> Vec<(String, Value)> {
    // Through text, like the fixture's numbers: serde_json rounds some last digits.
    let json = |value| serde_json::from_str(&serde_json::to_string(&value).unwrap()).unwrap();
    let pair = |(name, value): (&str, _)| (name.to_owned(), json(value));
    config.settings(profile).into_iter().map(pair).collect()
}

/// Returns the settings that differ from `base`, without the string itself.
fn changes(config: &AllocatorConfig, profile: &Profile, base: &[(String, Value)]) -> Value {
    let changed = settings(config, profile).into_iter().zip(base).filter(|(now, before)| now != *before);
    Value::Object(
        changed.map(|(now, _)| now).filter(|(name, _)| name != "PYTORCH_CUDA_ALLOC_CONF").collect::<Map<_, _>>(),
    )
}

/// Checks one line of a fixture, both while the program runs and at its start.
fn check(profile: &Profile, base: &[(String, Value)], row: &Value) {
    let confs: Vec<&str> = row[0].as_array().unwrap().iter().map(|conf| conf.as_str().unwrap()).collect();
    let mut config = AllocatorConfig::default();
    let errors: Vec<_> = confs.iter().map(|conf| parse(conf, profile, &mut config).err()).collect();
    let torch = profile.torch;
    if row[1] == "crash" {
        assert!(errors.iter().any(Option::is_some), "torch {torch} crashes on {confs:?}");
    } else if !errors.iter().flatten().any(ConfigError::is_undefined) {
        let errors: Vec<_> = errors.iter().map(|error| error.as_ref().map(notation)).collect();
        assert_eq!(serde_json::json!(errors), row[1], "errors of torch {torch} while it runs: {confs:?}");
        assert_eq!(changes(&config, profile, base), row[2], "settings of torch {torch} while it runs: {confs:?}");
        let last = confs.last().unwrap();
        assert!(config.conf == *last || last.contains('\0'), "the string itself: {last:?}");
    }
    let start = AllocatorConfig::from_conf(confs[0], profile);
    match &row[3] {
        Value::Null => {
            let config = start.unwrap_or_else(|error| panic!("torch {torch} starts with {:?}: {error}", confs[0]));
            let want = row.get(4).unwrap_or(&row[2]);
            assert_eq!(
                changes(&config, profile, base),
                *want,
                "settings at the start of torch {torch}: {:?}",
                confs[0]
            );
        }
        Value::String(none) if none == "unset" => {}
        Value::String(crash) if crash == "crash" => assert!(start.is_err(), "torch {torch} crashes on {:?}", confs[0]),
        error => {
            let got = start.err();
            if !got.as_ref().is_some_and(ConfigError::is_undefined) {
                let got = got.as_ref().map(notation);
                assert_eq!(got.as_deref(), error.as_str(), "error at the start of torch {torch}: {:?}", confs[0]);
            }
        }
    }
}

#[test]
fn settings_strings_are_read_as_pytorch_reads_them() {
    for (torch, fixture) in FIXTURES {
        let profile = Profile::of(torch).unwrap();
        let mut lines = fixture.lines();
        let base: Vec<(String, Value)> = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!(settings(&AllocatorConfig::default(), profile), base, "settings of torch {torch} by default");
        let rows: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(rows.len() >= 100, "the fixture of torch {torch} is cut short");
        for row in &rows {
            check(profile, &base, row);
        }
    }
}

#[test]
fn the_divisions_serialize_in_the_order_of_their_boundaries() {
    let mut config = AllocatorConfig::default();
    parse("roundup_power2_divisions:[2:4,>:1]", Profile::of("2.11").unwrap(), &mut config).unwrap();
    let (_, table) = config.settings(Profile::of("2.11").unwrap()).pop().unwrap();
    let text = serde_json::to_string(&table).unwrap();
    assert!(text.starts_with(r#"{"1":4,"2":4,"4":1,"8":1,"16":1"#), "{text}");
    assert!(text.ends_with(r#""16384":1,"32768":1}"#), "{text}");
}

#[test]
fn sizes_that_no_snapshot_shows_follow_the_large_segment() {
    // Up to torch 2.10 it stays until it is named again; since then every call sets it to the large segment's size.
    let cases = [
        ("2.6", "max_non_split_rounding_mb:100", "", 100),
        ("2.10", "max_non_split_rounding_mb:100", "", 100),
        ("2.11", "max_non_split_rounding_mb:100", "", 20),
        ("2.11", "large_segment_size_mb:38", "", 38),
        ("2.15", "large_segment_size_mb:38,max_non_split_rounding_mb:100", "max_split_size_mb:40", 38),
    ];
    for (torch, first, second, want) in cases {
        let profile = Profile::of(torch).unwrap();
        let mut config = AllocatorConfig::from_conf(first, profile).unwrap();
        parse(second, profile, &mut config).unwrap();
        assert_eq!(config.max_non_split_rounding >> 20, want, "torch {torch}: {first:?}, then {second:?}");
    }
}

/// Strings composed of meaningful parts.
fn meaningful() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        ",",
        ":",
        "[",
        "]",
        ">",
        " ",
        "\0",
        "8",
        "64",
        "0.5",
        "0x1p-1",
        "-1",
        "1e999",
        "True",
        "False",
        "native",
        "é",
        "max_split_size_mb",
        "large_segment_size_mb",
        "garbage_collection_threshold",
        "roundup_power2_divisions",
        "expandable_segments",
        "backend",
        "per_process_memory_fraction",
        "pinned_num_register_threads",
        "pinned_max_cached_size_mb",
        "expandable_segments_reserve",
        "expandable_segments_reserve_by_class",
        "foo",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn no_string_panics(conf in prop_oneof![any::<String>(), meaningful()], then in meaningful()) {
        for profile in Profile::ALL {
            let mut config = AllocatorConfig::from_conf(&conf, profile).unwrap_or_default();
            let _ = parse(&then, profile, &mut config);
            prop_assert_eq!(config.settings(profile).len(), AllocatorConfig::default().settings(profile).len());
            prop_assert!(!config.garbage_collection_threshold.is_nan() && config.garbage_collection_threshold < 1.0);
            let powers = config.roundup_power2_divisions.iter().all(|&steps| steps == 0 || steps.is_power_of_two());
            prop_assert!(powers);
        }
    }
}
