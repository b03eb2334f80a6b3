//! A search for better settings, one run at a time, so that a person can see how far it is and end it.

use std::collections::VecDeque;

use allocator::AllocatorConfig;
use protocol::whatif::{FromWhatIf, Tuned};
use whatif::tune::{Candidate, Goal, Search, Tried, tuning};
use whatif::{Outcome, Requests, Terms};

/// A search under way.
#[derive(Debug)]
pub struct Searching {
    /// The settings of the recording, on the device that is searched for.
    terms: Terms,
    conf: String,
    goal: Goal,
    search: Search,
    /// The outcome of the recorded settings there.
    recorded: Option<Outcome>,
    next: VecDeque<Candidate>,
    tried: Vec<Tried>,
}

impl Searching {
    /// Begins a search. `terms` are those of the recording on the device that is searched for, `conf` its settings.
    pub fn new(terms: Terms, conf: &str, goal: Goal) -> Self {
        let search = Search::new(terms.profile, goal, terms.fraction.is_some());
        let (next, tried) = (VecDeque::new(), Vec::new());
        Self { terms, conf: conf.to_owned(), goal, search, recorded: None, next, tried }
    }

    /// Runs the next settings. Returns how far the search is; `None` once it is over. The error is a sentence.
    pub fn step(&mut self, requests: &Requests) -> Result<Option<FromWhatIf>, String> {
        let run = |config| requests.run(&Terms { config, ..self.terms.clone() }).map_err(|error| error.to_string());
        if self.recorded.is_none() {
            self.recorded = Some(run(self.terms.config.clone())?);
        } else {
            if self.next.is_empty() {
                self.next = self.search.round(&self.tried).into();
            }
            let Some(candidate) = self.next.pop_front() else { return Ok(None) };
            // What a release refuses is no candidate of it.
            if let Ok(config) = AllocatorConfig::from_conf(&candidate.conf(&self.conf), self.terms.profile) {
                let outcome = run(config)?;
                self.tried.push(Tried { candidate, outcome });
            }
        }
        Ok(Some(FromWhatIf::Tuning { tried: self.tried.len() as u32, left: self.next.len() as u32 }))
    }

    /// Ends the search; `None` if nothing was run yet.
    pub fn end(self, requests: &Requests, is_complete: bool) -> Option<Tuned> {
        let Self { terms, conf, goal, recorded, tried, .. } = self;
        let tuning = tuning(goal, &tried, (&conf, &recorded?), (&requests.bounds(), terms.room()));
        Some(Tuned { tuning, is_complete })
    }
}
