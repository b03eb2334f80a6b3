//! Allocator settings as they are typed: `max_split_size_mb:128,expandable_segments:True`. What PyTorch would refuse is refused
//! in sentences that say which setting it is, what that takes, and what to write instead.

use allocator::{AllocatorConfig, Profile, parse};
use query::setting::{name_and_value, parts};

use super::message::one_line;
use super::suggestion::closest;

/// The settings, what each takes, and an example.
const TAKEN: &[(&str, &str, &str)] = &[
    ("max_split_size_mb", "a whole number of MiB, more than 20", "512"),
    ("max_non_split_rounding_mb", "a whole number of MiB, more than 20", "32"),
    ("large_segment_size_mb", "a whole number of MiB, more than 10", "64"),
    ("garbage_collection_threshold", "a share of the memory, between 0 and 1", "0.8"),
    ("roundup_power2_divisions", "a power of two, or a list of sizes in MiB with powers of two", "[256:1,512:2,>:4]"),
    ("expandable_segments", "True or False", "True"),
    ("backend", "native", "native"),
    ("release_lock_on_cudamalloc", "True or False", "True"),
    ("graph_capture_record_stream_reuse", "True or False", "True"),
    ("per_process_memory_fraction", "a share of the memory, more than 0 and at most 1", "0.9"),
    ("throw_on_cudamalloc_oom", "True or False", "True"),
    ("expandable_segments_reserve", "a multiple of the device's memory, or a number of bytes", "1.5"),
    ("pinned_use_cuda_host_register", "True or False", "True"),
    ("pinned_num_register_threads", "a power of two up to 128", "8"),
    ("pinned_use_background_threads", "True or False", "True"),
    ("pinned_max_round_threshold_mb", "a whole number of MiB", "64"),
    ("pinned_max_cached_size_mb", "a whole number of MiB", "64"),
    ("pinned_reserve_segment_size_mb", "a whole number of MiB", "64"),
    ("pinned_free_catch_all", "True or False", "True"),
];
/// The backend that is another allocator.
const STREAM_ORDERED: &str = "cudaMallocAsync";

/// Reads settings as a program that starts with them in its environment. `option` names them in the error.
pub(super) fn from_start(option: &str, conf: &str, profile: &Profile) -> Result<AllocatorConfig, String> {
    AllocatorConfig::from_conf(conf, profile).map_err(|error| refusal(option, conf, profile, &error.to_string()))
}

/// Reads settings as a program that sets them while it runs. `option` names them in the error.
pub(super) fn read(option: &str, conf: &str, profile: &Profile) -> Result<AllocatorConfig, String> {
    let mut config = AllocatorConfig::default();
    match conf.is_empty() {
        true => Ok(config),
        false => match parse(conf, profile, &mut config) {
            Ok(()) => Ok(config),
            Err(error) => Err(refusal(option, conf, profile, &error.to_string())),
        },
    }
}

/// Says why settings are refused: what, why, and what next. `own` are PyTorch's words.
fn refusal(option: &str, conf: &str, profile: &Profile, own: &str) -> String {
    let torch = profile.torch;
    let quoted = one_line(conf);
    // The first one that is refused by itself is the reason; else, how they are put together.
    let is_refused = |part: &&str| parse(part, profile, &mut AllocatorConfig::default()).is_err();
    let part = parts(conf).find(is_refused);
    let Some(part) = part else {
        return format!(
            "{option} \"{quoted}\": torch {torch} refuses it: {}. Write pairs of names and values, such as \
             max_split_size_mb:512,expandable_segments:True.",
            own.trim_end_matches('.')
        );
    };
    let (name, value) = name_and_value(part);
    let (name, value) = (one_line(name), one_line(value));
    if name == "backend" && value == STREAM_ORDERED {
        return format!(
            "{option} \"{quoted}\": backend:{STREAM_ORDERED} is CUDA's own allocator, and this runs PyTorch's. Leave it out; to \
             compare the two on the same requests, type: vramscope bench-allocators"
        );
    }
    let known = || TAKEN.iter().map(|(known, ..)| *known).filter(|known| knows(profile, known));
    if let Some((_, takes, example)) = TAKEN.iter().find(|(known, ..)| *known == name) {
        if !knows(profile, &name) {
            let since = Profile::ALL.into_iter().find(|other| knows(other, &name));
            let since =
                since.map_or_else(String::new, |other| format!("; torch {} is the first that does", other.torch));
            return format!(
                "{option} \"{quoted}\": torch {torch} does not have {name}{since}. Leave it out, or choose another release."
            );
        }
        let wrong = if value.is_empty() { "has no value".to_owned() } else { format!("can't be {value:?}") };
        return format!("{option} \"{quoted}\": {name} {wrong}. It takes {takes}. Write it like {name}:{example}.");
    }
    let next = match closest(&name, known()) {
        Some(other) => format!("Did you mean {other}?"),
        None => format!("It has {}.", known().collect::<Vec<_>>().join(", ")),
    };
    format!("{option} \"{quoted}\": torch {torch} has no setting {name:?}. {next}")
}

/// Whether a release has a setting: it reads its example.
fn knows(profile: &Profile, name: &str) -> bool {
    let example = TAKEN.iter().find(|(known, ..)| *known == name).map(|(_, _, example)| *example);
    example.is_some_and(|example| parse(&format!("{name}:{example}"), profile, &mut AllocatorConfig::default()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(conf: &str, torch: &str) -> String {
        read("--conf", conf, Profile::of(torch).unwrap()).map(|_| ()).unwrap_err()
    }

    #[test]
    fn a_refusal_names_the_setting_what_it_takes_and_what_to_write() {
        for (conf, torch, want) in [
            (
                "max_split_size_mb:abc",
                "2.11",
                "max_split_size_mb can't be \"abc\". It takes a whole number of MiB, more than 20. Write it like max_split_size_mb:512.",
            ),
            ("max_split_size_mb:1", "2.6", "max_split_size_mb can't be \"1\"."),
            ("expandable_segments:True,max_split_size_mb:", "2.11", "max_split_size_mb has no value."),
            ("expandable_segments:yes", "2.15", "expandable_segments can't be \"yes\". It takes True or False."),
            ("backend:cudaMallocAsync", "2.11", "is CUDA's own allocator, and this runs PyTorch's. Leave it out;"),
            ("backend:cudaMallocAsync", "2.6", "is CUDA's own allocator"),
            ("backend:managed", "2.11", "backend can't be \"managed\". It takes native."),
            (
                "expandable_segment:True",
                "2.11",
                "has no setting \"expandable_segment\". Did you mean expandable_segments?",
            ),
            ("nonsense:1", "2.11", "has no setting \"nonsense\". It has max_split_size_mb, "),
            ("per_process_memory_fraction:0.9", "2.6", "torch 2.6 does not have per_process_memory_fraction; torch "),
        ] {
            let error = error(conf, torch);
            assert!(error.starts_with(&format!("--conf \"{conf}\": ")) && error.contains(want), "{error}");
        }
    }

    #[test]
    fn every_setting_is_known_to_the_newest_release_and_its_example_is_read() {
        let newest = Profile::ALL.last().unwrap();
        for (name, ..) in TAKEN {
            assert!(knows(newest, name), "{name}");
        }
    }

    #[test]
    fn a_list_in_brackets_is_one_value() {
        assert!(
            read("--conf", "roundup_power2_divisions:[256:1,512:2],expandable_segments:True", Profile::ALL[7]).is_ok()
        );
    }
}
