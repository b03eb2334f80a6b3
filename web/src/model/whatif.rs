//! A device's requests under other settings: the runs, what a person is about to try, and the search for better settings.

pub use protocol::whatif::{CurvesAsked, RECORDED, RunConditions, RunCurve, Tuned};
use protocol::whatif::{FromWhatIf, Opened};
use query::diagnosis::Verdict;
use query::finding::Remedy;
use query::whatif::Outcome;
pub use query::whatif::{Goal, Group};

/// The curves of all runs, with the part of the axis that they are of.
pub type Curves = (CurvesAsked, Vec<RunCurve>);

/// Maximum number of runs: each has a colour, and a line in the chart.
pub const MOST_RUNS: usize = 12;

/// What is known of a device's requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhatIf {
    /// The device, as an index into the summary's devices.
    pub device: u32,
    /// What was read; `None` until then.
    pub opened: Option<Box<Opened>>,
    /// Why nothing can be run: a sentence.
    pub failed: Option<String>,
    /// The runs, that of the recording first.
    pub runs: Vec<Run>,
    /// The id of the last run.
    pub last_id: u32,
    /// What the next run is under.
    pub draft: RunConditions,
    /// Why the last run was refused: a sentence.
    pub refused: Option<String>,
    /// What settings are searched for.
    pub goal: Goal,
    /// The device that they are searched for: the name of a card, or empty for that of the recording.
    pub card: String,
    /// The search.
    pub tune: Tune,
    /// Whether a search begins as soon as the requests are read.
    pub wants_tune: bool,
    /// A device, and the verdict whose advice is to be checked as soon as the device's requests are read.
    pub wants_proof: Option<(u32, Box<Verdict>)>,
    /// The remedies of the verdict at a position, after they were checked.
    pub proven: Option<(u32, Vec<Remedy>)>,
    /// Counts the changes of the runs: curves that were drawn before are out of date.
    pub revision: u32,
}

/// A run, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: u32,
    /// What it is under.
    pub conditions: RunConditions,
    /// What it came to.
    pub outcome: Option<Outcome>,
    /// The least memory on which no request fails.
    pub smallest: Option<Result<u64, String>>,
}

/// The state of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Tune {
    /// None was begun.
    #[default]
    None,
    /// It goes on.
    Running {
        /// The settings that were tried.
        tried: u32,
        /// Those that are known to be tried next.
        left: u32,
    },
    /// It has ended.
    Done(Box<Tuned>),
    /// It could not be run: a sentence.
    Refused(String),
}

/// Something that changes what is known, or what a person is about to try.
#[derive(Clone, Debug, PartialEq)]
pub enum WhatIfStep {
    /// The requests of a device are being read.
    Opening(u32),
    /// The worker said something.
    Heard(Box<FromWhatIf>),
    /// A person wrote what the next run is under.
    Draft(Box<RunConditions>),
    /// A run was asked for.
    Added(Box<RunConditions>),
    /// A run is no longer wanted.
    Removed(u32),
    /// Sets what settings are searched for.
    Goal(Goal),
    /// Sets the device that they are searched for.
    Card(String),
    /// A search is wanted once the requests are read.
    TuneWanted,
    /// A search was asked for.
    Tuning,
    /// A device's verdict is to be checked for what it advises.
    ProofWanted(u32, Box<Verdict>),
}

impl WhatIf {
    /// Applies a step.
    pub fn apply(&mut self, step: WhatIfStep) {
        match step {
            WhatIfStep::Opening(device) => {
                // What a person was about to try, or wants, outlives what is read again.
                let Self { draft, goal, card, wants_tune, wants_proof, .. } = std::mem::take(self);
                let wants_proof = wants_proof.filter(|(of, _)| *of == device);
                *self = Self { device, draft, goal, card, wants_tune, wants_proof, ..Self::default() };
            }
            WhatIfStep::Heard(message) => self.hear(*message),
            WhatIfStep::Draft(conditions) => {
                self.draft = *conditions;
                self.draft.conf = bare(&self.draft.conf).to_owned();
                self.refused = None;
            }
            WhatIfStep::Added(conditions) => {
                self.last_id += 1;
                self.refused = None;
                self.runs.push(Run { id: self.last_id, conditions: *conditions, ..Run::default() });
            }
            WhatIfStep::Removed(id) => {
                self.runs.retain(|run| run.id != id);
                self.revision += 1;
            }
            WhatIfStep::Goal(goal) => self.goal = goal,
            WhatIfStep::Card(card) => self.card = card,
            WhatIfStep::TuneWanted => self.wants_tune = true,
            WhatIfStep::ProofWanted(device, verdict) => self.wants_proof = Some((device, verdict)),
            WhatIfStep::Tuning => {
                self.wants_tune = false;
                self.tune = Tune::Running { tried: 0, left: 0 };
            }
        }
    }

    fn hear(&mut self, message: FromWhatIf) {
        match message {
            FromWhatIf::Opened(opened) => {
                self.runs = vec![Run { id: RECORDED, conditions: opened.recorded.clone(), ..Run::default() }];
                if self.draft == RunConditions::default() {
                    self.draft.conf.clone_from(&opened.recorded.conf);
                }
                self.opened = Some(opened);
            }
            FromWhatIf::Ran(id, Ok(outcome)) => {
                self.revision += 1;
                self.change(id, |run| run.outcome = Some(outcome));
            }
            FromWhatIf::Ran(id, Err(sentence)) => {
                self.runs.retain(|run| run.id != id);
                self.refused = Some(sentence);
            }
            FromWhatIf::Smallest(id, found) => self.change(id, |run| run.smallest = Some(found)),
            FromWhatIf::Tuning { tried, left } => self.tune = Tune::Running { tried, left },
            FromWhatIf::Tuned(Ok(tuned)) => self.tune = Tune::Done(tuned),
            FromWhatIf::Tuned(Err(sentence)) if sentence.is_empty() => self.tune = Tune::None,
            FromWhatIf::Tuned(Err(sentence)) => self.tune = Tune::Refused(sentence),
            FromWhatIf::Failed(sentence) => {
                (self.failed, self.tune) = (Some(sentence), Tune::None);
            }
            FromWhatIf::Proven(position, remedies) => self.proven = Some((position, remedies)),
            // Delivered to those who asked.
            FromWhatIf::Curves(..) | FromWhatIf::Traced(_) => {}
        }
    }

    fn change(&mut self, id: u32, change: impl FnOnce(&mut Run)) {
        if let Some(run) = self.runs.iter_mut().find(|run| run.id == id) {
            change(run);
        }
    }

    /// Returns the remedies of a verdict after they were checked; those that it has until then.
    pub fn remedies<'a>(&'a self, verdict: &'a Verdict) -> &'a [Remedy] {
        let proven = self.proven.as_ref().filter(|(position, _)| verdict.position == Some(*position));
        proven.map_or(&verdict.remedies, |(_, remedies)| remedies)
    }

    /// Returns whether advice of a verdict is still being checked, given that it is to be.
    pub const fn is_checking(&self) -> bool {
        self.proven.is_none() && self.failed.is_none()
    }

    /// Returns whether nothing was tried and nothing searched for yet.
    pub fn is_untouched(&self) -> bool {
        self.last_id == 0 && self.tune == Tune::None && !self.wants_tune
    }

    /// Returns the run under the settings of the recording, once it is known what it came to.
    pub fn recorded(&self) -> Option<&Outcome> {
        self.runs.iter().find(|run| run.id == RECORDED)?.outcome.as_ref()
    }
}

/// Returns settings without what surrounds them in a shell: `export PYTORCH_CUDA_ALLOC_CONF="…"`.
fn bare(text: &str) -> &str {
    let text = text.rsplit_once("_ALLOC_CONF=").map_or(text, |(_, conf)| conf);
    let quotes = ['"', '\''];
    // A person who is typing may have ended with a space.
    if text.trim().starts_with(quotes) { text.trim().trim_matches(quotes) } else { text }
}

#[cfg(test)]
#[path = "whatif_tests.rs"]
mod tests;
