//! A search for better settings, one candidate at a time.

use protocol::whatif::{FromWhatIf, Goal, Group, Recommended, Tuned};
use shared::allocator::AllocatorConfig;
use shared::whatif::{Outcome, Requests, Terms};

/// A search under way.
#[derive(Debug)]
pub struct Searching {
    terms: Terms,
    goal: Goal,
    recorded: String,
    left: Vec<String>,
    tried: Vec<(String, Outcome)>,
}

const SIMPLE: [&str; 5] = [
    "expandable_segments:True",
    "max_split_size_mb:64",
    "max_split_size_mb:256",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.8",
];

impl Searching {
    /// Begins a search.
    pub fn new(terms: Terms, recorded: &str, goal: Goal) -> Self {
        let mut left = vec![recorded.to_owned(), String::new()];
        left.extend(SIMPLE.map(str::to_owned));
        Self { terms, goal, recorded: recorded.to_owned(), left, tried: Vec::new() }
    }

    /// Returns what is said of a search that can't begin.
    pub fn refused(goal: Goal, sentence: String) -> Tuned {
        Tuned { goal, tried: 0, is_complete: false, groups: Vec::new(), recommended: None, verdict: sentence }
    }

    /// Tries the next candidate. Returns progress; `None` if nothing is left.
    pub fn step(&mut self, requests: &Requests) -> Option<Option<FromWhatIf>> {
        if self.left.is_empty() {
            return None;
        }
        let conf = self.left.remove(0);
        if let Ok(config) = AllocatorConfig::from_conf(&conf, self.terms.profile)
            && let Ok(outcome) = requests.run(&Terms { config, ..self.terms.clone() })
        {
            self.tried.push((conf, outcome));
        }
        Some(Some(FromWhatIf::Tuning { tried: self.tried.len() as u32, left: self.left.len() as u32 }))
    }

    /// Ends the search.
    pub fn end(self, _: &Requests, is_complete: bool) -> Tuned {
        let Self { goal, tried, recorded, .. } = self;
        let mut groups: Vec<Group> = Vec::new();
        let count = tried.len() as u32;
        for (conf, outcome) in tried {
            let is_recorded = conf == recorded;
            match groups.iter_mut().find(|group| group.outcome == outcome) {
                Some(group) => {
                    group.confs.push(conf);
                    group.is_recorded |= is_recorded;
                }
                None => groups.push(Group { confs: vec![conf], outcome, is_front: false, is_recorded }),
            }
        }
        groups.sort_by_key(|group| group.outcome.peak_reserved);
        let recommended = groups
            .first()
            .and_then(|group| group.confs.first())
            .map(|conf| Recommended { conf: conf.clone(), line: format!("PYTORCH_CUDA_ALLOC_CONF={conf}") });
        Tuned { goal, tried: count, is_complete, groups, recommended, verdict: String::new() }
    }
}
