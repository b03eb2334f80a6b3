//! One combination of settings.

use serde::{Deserialize, Serialize};

use query::setting::{merged, with_option};

/// The options of `PYTORCH_CUDA_ALLOC_CONF` that decide how much memory is reserved, as one combination of their values.
/// `None` and `false` are PyTorch's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Candidate {
    /// `expandable_segments`.
    pub expandable_segments: bool,
    /// `max_split_size_mb`: MiB.
    pub max_split_size_mb: Option<u64>,
    /// `max_non_split_rounding_mb`: MiB.
    pub max_non_split_rounding_mb: Option<u64>,
    /// `roundup_power2_divisions`: steps between two powers of two.
    pub roundup_power2_divisions: Option<u64>,
    /// `large_segment_size_mb`: MiB.
    pub large_segment_size_mb: Option<u64>,
    /// `garbage_collection_threshold`, in hundredths.
    pub garbage_collection_percent: Option<u64>,
}

/// The options that a candidate sets.
const KEYS: [&str; 6] = [
    "expandable_segments",
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "roundup_power2_divisions",
    "large_segment_size_mb",
    "garbage_collection_threshold",
];

impl Candidate {
    /// Returns the number of options that are set.
    pub fn options(&self) -> usize {
        let Self { expandable_segments, .. } = self;
        usize::from(*expandable_segments) + self.values().into_iter().flatten().count()
    }

    /// Returns the settings. Of the `recorded` ones they keep the options that a candidate doesn't set.
    pub fn conf(&self, recorded: &str) -> String {
        merged(&KEYS.iter().fold(recorded.to_owned(), |conf, key| with_option(&conf, key, "")), &self.own())
    }

    /// Returns the recorded settings with those options that are not at PyTorch's default in the candidate.
    pub fn added_to(&self, recorded: &str) -> String {
        merged(recorded, &self.own())
    }

    fn own(&self) -> String {
        let [split, rounding, divisions, segment, percent] = self.values();
        let own = [
            // Its minimum depends on the size of large segments, which therefore comes first.
            segment.map(|mb| format!("large_segment_size_mb:{mb}")),
            self.expandable_segments.then(|| "expandable_segments:True".to_owned()),
            split.map(|mb| format!("max_split_size_mb:{mb}")),
            rounding.map(|mb| format!("max_non_split_rounding_mb:{mb}")),
            divisions.map(|steps| format!("roundup_power2_divisions:{steps}")),
            percent.map(|percent| format!("garbage_collection_threshold:{}.{:02}", percent / 100, percent % 100)),
        ];
        own.into_iter().flatten().collect::<Vec<_>>().join(",")
    }

    fn values(&self) -> [Option<u64>; 5] {
        [
            self.max_split_size_mb,
            self.max_non_split_rounding_mb,
            self.roundup_power2_divisions,
            self.large_segment_size_mb,
            self.garbage_collection_percent,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allocator::{AllocatorConfig, TORCH_2_11};

    #[test]
    fn the_line_to_paste() {
        let plain = Candidate::default();
        let many = Candidate {
            expandable_segments: true,
            max_split_size_mb: Some(128),
            large_segment_size_mb: Some(64),
            garbage_collection_percent: Some(80),
            ..plain.clone()
        };
        let cases = [
            (&plain, "", "", 0),
            (&plain, "expandable_segments:True,backend:native", "backend:native", 0),
            (
                &plain,
                "roundup_power2_divisions:[64:2, >:4],pinned_num_register_threads:4",
                "pinned_num_register_threads:4",
                0,
            ),
            (
                &many,
                "max_split_size_mb:32 , backend:native",
                "backend:native,large_segment_size_mb:64,expandable_segments:True,max_split_size_mb:128,\
                 garbage_collection_threshold:0.80",
                4,
            ),
        ];
        for (candidate, recorded, want, options) in cases {
            let conf = candidate.conf(recorded);
            assert_eq!((conf.as_str(), candidate.options()), (want, options));
            assert!(AllocatorConfig::from_conf(&conf, &TORCH_2_11).is_ok(), "{conf}");
        }
        let conf = many.added_to("garbage_collection_threshold:0.50,max_non_split_rounding_mb:64");
        assert!(conf.starts_with("garbage_collection_threshold:0.80,max_non_split_rounding_mb:64,"), "{conf}");
    }
}
