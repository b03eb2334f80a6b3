//! Which settings are tried.

use rustc_hash::FxHashSet;

use super::candidate::Candidate;
use query::whatif::{Goal, Outcome};

use super::goal::rank;
use allocator::Profile;
use trace::order::SortFew;

/// Values of `max_split_size_mb` that are tried first. PyTorch takes none of 20 and below.
const SPLITS: [u64; 7] = [32, 64, 128, 256, 512, 1024, 2048];
/// Values of `max_non_split_rounding_mb`, besides the default of 20.
const ROUNDINGS: [u64; 3] = [64, 256, 1024];
/// Values of `roundup_power2_divisions`. PyTorch takes powers of two only.
const DIVISIONS: [u64; 4] = [2, 4, 8, 16];
/// Values of `large_segment_size_mb`, besides the default of 20.
const SEGMENTS: [u64; 4] = [40, 80, 160, 320];
/// Hundredths of `garbage_collection_threshold`.
const PERCENTS: [u64; 4] = [60, 70, 80, 90];
/// The best candidates around which finer values are tried.
const BEST: usize = 3;
/// Rounds of finer values.
const FINER: u32 = 3;

/// A candidate with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The settings.
    pub candidate: Candidate,
    /// Their outcome.
    pub outcome: Outcome,
}

/// A search for settings. Each round returns the candidates to try next.
#[derive(Clone, Debug)]
pub struct Search {
    goal: Goal,
    has_large_segments: bool,
    has_rounding_limit: bool,
    has_limit: bool,
    round: u32,
    seen: FxHashSet<Candidate>,
}

impl Search {
    /// Begins a search over the settings that a release has. Garbage collection is tried only if the memory of the process is
    /// limited by a fraction (`has_limit`): PyTorch ignores its threshold otherwise.
    pub fn new(profile: &Profile, goal: Goal, has_limit: bool) -> Self {
        let has_large_segments = profile.knows_setting("large_segment_size_mb");
        let has_rounding_limit = profile.knows_setting("max_non_split_rounding_mb");
        Self { goal, has_large_segments, has_rounding_limit, has_limit, round: 0, seen: FxHashSet::default() }
    }

    /// Returns the candidates of the next round, given everything that was tried so far. It is empty when the search is over.
    pub fn round(&mut self, tried: &[Tried]) -> Vec<Candidate> {
        loop {
            let round = self.round;
            self.round += 1;
            let candidates = match round {
                0 => self.singles(),
                1 => self.pairs(),
                _ if round < 2 + FINER => self.finer(tried),
                _ => return Vec::new(),
            };
            let new: Vec<_> = candidates.into_iter().filter(|candidate| self.seen.insert(candidate.clone())).collect();
            if !new.is_empty() {
                return new;
            }
        }
    }

    /// PyTorch's defaults, and each value by itself.
    fn singles(&self) -> Vec<Candidate> {
        std::iter::once(Candidate::default()).chain(self.values().into_iter().flatten()).collect()
    }

    /// Each value with each value of another option.
    fn pairs(&self) -> Vec<Candidate> {
        let values = self.values();
        let mut pairs = Vec::new();
        for (n, first) in values.iter().enumerate() {
            let others = values.iter().skip(n + 1).flatten();
            pairs.extend(others.flat_map(|other| first.iter().filter_map(|first| self.joined(first, other))));
        }
        // Only blocks that are never split are rounded in this way.
        for split in SPLITS.into_iter().filter(|_| self.has_rounding_limit) {
            pairs.extend(ROUNDINGS.map(|rounding| Candidate {
                max_split_size_mb: Some(split),
                max_non_split_rounding_mb: Some(rounding),
                ..Candidate::default()
            }));
        }
        pairs
    }

    /// The neighbours of the best candidates, and the best candidates joined.
    fn finer(&self, tried: &[Tried]) -> Vec<Candidate> {
        let mut ranked: Vec<&Tried> = tried.iter().collect();
        ranked.sort_few_by_key(|tried| rank(self.goal, &tried.outcome, tried.candidate.options(), false));
        ranked.dedup_by_key(|tried| tried.outcome);
        let best: Vec<&Candidate> = ranked.iter().take(BEST).map(|tried| &tried.candidate).collect();
        let mut finer = Vec::new();
        for (n, candidate) in best.iter().enumerate() {
            finer.extend(self.neighbours(candidate));
            finer.extend(best.iter().skip(n + 1).filter_map(|other| self.joined(candidate, other)));
            finer.extend(self.values().into_iter().flatten().filter_map(|value| self.joined(candidate, &value)));
        }
        finer
    }

    /// Values between those that were tried before: the geometric middle to the next one below and above, halfway again in
    /// each round.
    fn neighbours(&self, candidate: &Candidate) -> Vec<Candidate> {
        let part = 1_u64 << self.round.min(8);
        let around = |value: u64| [value - value / part, value + value / part];
        let mut found = Vec::new();
        if let Some(split) = candidate.max_split_size_mb {
            let least = candidate.large_segment_size_mb.unwrap_or(0).max(21);
            found.extend(
                around(split).map(|value| Candidate { max_split_size_mb: Some(value.max(least)), ..candidate.clone() }),
            );
        }
        if let Some(segment) = candidate.large_segment_size_mb {
            let most = candidate.max_split_size_mb.unwrap_or(u64::MAX);
            // Pages of expandable segments are whole granules of 2 MiB; the driver refuses others.
            let sizes = around(segment).map(|value| value.clamp(12, most) & !1);
            found.extend(sizes.map(|value| Candidate { large_segment_size_mb: Some(value), ..candidate.clone() }));
        }
        if let Some(percent) = candidate.garbage_collection_percent {
            let values = around(percent).map(|value| value.clamp(1, 99));
            found
                .extend(values.map(|value| Candidate { garbage_collection_percent: Some(value), ..candidate.clone() }));
        }
        found
    }

    /// All values, by option.
    fn values(&self) -> Vec<Vec<Candidate>> {
        let plain = Candidate::default();
        let mut values = vec![
            vec![Candidate { expandable_segments: true, ..plain.clone() }],
            SPLITS.map(|value| Candidate { max_split_size_mb: Some(value), ..plain.clone() }).to_vec(),
            DIVISIONS.map(|value| Candidate { roundup_power2_divisions: Some(value), ..plain.clone() }).to_vec(),
        ];
        if self.has_large_segments {
            values
                .push(SEGMENTS.map(|value| Candidate { large_segment_size_mb: Some(value), ..plain.clone() }).to_vec());
        }
        if self.has_limit {
            values.push(
                PERCENTS.map(|value| Candidate { garbage_collection_percent: Some(value), ..plain.clone() }).to_vec(),
            );
        }
        values
    }

    /// Joins two candidates; `None` if that is one of them, or if PyTorch refuses it.
    fn joined(&self, first: &Candidate, other: &Candidate) -> Option<Candidate> {
        let joined = Candidate {
            expandable_segments: first.expandable_segments || other.expandable_segments,
            max_split_size_mb: first.max_split_size_mb.or(other.max_split_size_mb),
            max_non_split_rounding_mb: first.max_non_split_rounding_mb.or(other.max_non_split_rounding_mb),
            roundup_power2_divisions: first.roundup_power2_divisions.or(other.roundup_power2_divisions),
            large_segment_size_mb: first.large_segment_size_mb.or(other.large_segment_size_mb),
            garbage_collection_percent: first.garbage_collection_percent.or(other.garbage_collection_percent),
        };
        let segment = joined.large_segment_size_mb.unwrap_or(0);
        let is_valid = joined.max_split_size_mb.is_none_or(|split| split >= segment)
            && joined.max_non_split_rounding_mb.is_none_or(|rounding| rounding >= segment);
        (is_valid && joined != *first && joined != *other).then_some(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allocator::AllocatorConfig;

    #[test]
    fn every_candidate_is_valid_new_and_the_search_ends() {
        for profile in Profile::ALL {
            for (goal, has_limit) in Goal::ALL.into_iter().zip([false, true, true]) {
                let (mut search, mut tried) = (Search::new(profile, goal, has_limit), Vec::new());
                let mut seen = FxHashSet::default();
                loop {
                    let round = search.round(&tried);
                    if round.is_empty() {
                        break;
                    }
                    for candidate in round {
                        let conf = candidate.conf("");
                        let config = AllocatorConfig::from_conf(&conf, profile);
                        assert!(config.is_ok(), "torch {}: {conf}: {config:?}", profile.torch);
                        assert!(seen.insert(candidate.clone()), "{conf}");
                        // 100 is best, which lies between two values of the first rounds.
                        let peak_reserved = candidate.max_split_size_mb.map_or(5000, |split| split.abs_diff(100));
                        tried.push(Tried { candidate, outcome: Outcome { peak_reserved, ..Outcome::default() } });
                    }
                }
                assert!((50..400).contains(&seen.len()), "{}", seen.len());
                let best = tried.iter().map(|tried| tried.outcome.peak_reserved).min().unwrap();
                assert!(goal != Goal::Reserved || best < 128 - 100, "finer values were tried: {best}");
            }
        }
    }
}
