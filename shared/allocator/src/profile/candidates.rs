//! Which releases may have written a snapshot file that does not name its own.

use super::super::config::AllocatorConfig;
use super::Profile;
use trace::order::SortFew;
use trace::{Marks, Settings};

/// The weight of a part that the file has but the release does not write. A missing part weighs 1, since other programs
/// than PyTorch's Python package leave parts out.
const UNKNOWN: u32 = 8;

impl Profile {
    /// Returns all profiles, those first that fit a snapshot file best. Releases that fit equally come newest first.
    ///
    /// The optional parts of the file, the names of its settings and its settings string decide: 2.4, 2.8, 2.9, 2.12
    /// and 2.13 can be identified; 2.5 to 2.7, 2.10 and 2.11, and 2.14 and 2.15 only as groups. Another program than
    /// PyTorch may have written parts that its release doesn't, so that a worse fit may still be the right one.
    pub fn candidates(settings: &Settings, marks: &Marks) -> Vec<&'static Self> {
        let mut profiles = Self::ALL.to_vec();
        profiles.reverse();
        profiles.sort_few_by_key(|profile| profile.misfits(settings, marks));
        profiles
    }

    /// Returns how badly a file fits the release; 0 if it may have written it.
    fn misfits(&self, settings: &Settings, marks: &Marks) -> u32 {
        let misfit = |is_there: bool, since: (u32, u32)| match (is_there, since <= self.version) {
            (true, false) => UNKNOWN,
            (false, true) => 1,
            _ => 0,
        };
        let mut misfits = misfit(marks.annotations, (2, 5)) + misfit(marks.host, (2, 14));
        if marks.entries {
            misfits += misfit(marks.compile_context, (2, 8));
            misfits += misfit(marks.user_metadata, (2, 10));
            misfits += misfit(marks.pool_id, (2, 12));
        }
        if !settings.as_written.is_empty() {
            let has = |key: &str| settings.as_written.iter().any(|(name, _)| name == key);
            misfits += misfit(has("graph_capture_record_stream_reuse"), (2, 9));
            misfits += misfit(has("max_round_threshold"), (2, 13));
        }
        if AllocatorConfig::from_conf(&settings.conf, self).is_err() {
            misfits += UNKNOWN;
        }
        misfits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: Marks = Marks {
        entries: true,
        compile_context: false,
        user_metadata: false,
        pool_id: false,
        annotations: true,
        host: false,
    };

    fn settings(conf: &str, names: &[&str]) -> Settings {
        let as_written = ["PYTORCH_CUDA_ALLOC_CONF"].iter().chain(names);
        let as_written = as_written.map(|name| ((*name).to_owned(), String::new())).collect();
        Settings { conf: conf.to_owned(), as_written, ..Settings::default() }
    }

    fn check(settings: &Settings, marks: Marks, want: &[&str]) {
        let found = Profile::candidates(settings, &marks);
        let (best, others) = found.split_at(want.len());
        assert_eq!(best.iter().map(|profile| profile.torch).collect::<Vec<_>>(), want, "{settings:?} {marks:?}");
        let misfits = |profile: &Profile| profile.misfits(settings, &marks);
        assert!(
            best.iter().all(|one| others.iter().all(|other| misfits(one) < misfits(other))),
            "{settings:?} {marks:?}"
        );
        assert_eq!(found.len(), Profile::ALL.len());
    }

    #[test]
    fn each_release_is_told_from_others_as_far_as_possible() {
        let (old, new) =
            (&["graph_capture_record_stream_reuse"][..], ["graph_capture_record_stream_reuse", "max_round_threshold"]);
        let compiled = Marks { compile_context: true, ..ENTRIES };
        let tagged = Marks { user_metadata: true, ..compiled };
        let pooled = Marks { pool_id: true, ..tagged };
        check(&settings("", &[]), Marks { annotations: false, ..ENTRIES }, &["2.4"]);
        check(&settings("", &[]), ENTRIES, &["2.7", "2.6", "2.5"]);
        check(&settings("", &[]), compiled, &["2.8"]);
        check(&settings("", old), compiled, &["2.9"]);
        check(&settings("", old), tagged, &["2.11", "2.10"]);
        check(&settings("", old), pooled, &["2.12"]);
        check(&settings("", &new), pooled, &["2.13"]);
        check(&settings("", &new), Marks { host: true, ..pooled }, &["2.15", "2.14"]);
    }

    #[test]
    fn the_settings_string_rules_out_releases_that_refuse_it() {
        let tagged = Marks { compile_context: true, user_metadata: true, ..ENTRIES };
        let names = ["graph_capture_record_stream_reuse"];
        check(&settings("large_segment_size_mb:40", &names), tagged, &["2.11"]);
        check(&settings("max_non_split_rounding_mb:40", &[]), ENTRIES, &["2.7", "2.6"]);
    }

    #[test]
    fn what_is_missing_counts_less_than_what_is_there() {
        // Written by PyTorch's C++ functions, without annotations.
        let compiled = Marks { compile_context: true, annotations: false, ..ENTRIES };
        check(&settings("", &[]), compiled, &["2.8"]);
        // Nothing is known: every release may have written it.
        check(&Settings::default(), Marks::default(), &["2.4"]);
    }
}
