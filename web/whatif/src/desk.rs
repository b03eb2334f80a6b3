//! Answers questions about one device's requests, one piece of work at a time, the quickest first: runs, then the next
//! settings of a search, then the least memory of each run.

use protocol::whatif::{CurvesAsked, FromWhatIf, Opened, RECORDED, ToWhatIf, Wish};
use shared::allocator::{AllocatorConfig, DriverError, Profile, TORCH_2_6, TORCH_2_11, TORCH_2_15};
use shared::session::RecordedRequests;
use shared::whatif::{Course, Requests, SelfCheck, Terms};

use crate::axis::Times;
use crate::curve::curve;
use crate::search::Searching;
use crate::wish::terms;

/// Said of requests that the allocator can't even begin with.
fn refused(error: &DriverError) -> String {
    format!("This trace can't be run again: {error}.")
}

/// What is known of one device's requests, and what is still to do.
#[derive(Debug)]
pub struct Desk {
    requests: Requests,
    conf: String,
    profile: &'static Profile,
    times: Times,
    /// Runs that are asked for, the newest last.
    asked: Vec<(u32, Terms)>,
    runs: Vec<Run>,
    search: Option<Searching>,
}

/// A run that is done.
#[derive(Debug)]
struct Run {
    id: u32,
    terms: Terms,
    course: Course,
    stopped_at: Option<u32>,
    /// Whether its least memory is known.
    is_measured: bool,
}

impl Desk {
    /// Takes a device's requests, and answers them under the settings of the recording. The error is a sentence.
    pub fn open(recorded: RecordedRequests) -> Result<(Self, Opened), String> {
        let RecordedRequests { requests, conf, torch, events, steps_us } = recorded;
        if requests.is_empty() {
            return Err("This trace has no request for memory, so there is nothing to run again.".to_owned());
        }
        let profiles = match Profile::of(&torch) {
            Some(profile) => vec![profile],
            // Of releases that fit equally well, the first one is taken.
            None => vec![&TORCH_2_11, &TORCH_2_15, &TORCH_2_6],
        };
        let (profile, check) = best(&requests, profiles, &conf)?;
        let opened = Opened {
            check,
            recorded: Wish { conf: conf.clone(), torch: profile.torch.to_owned(), ..Wish::default() },
            capacity: requests.capacity(),
            releases: Profile::ALL.iter().map(|profile| profile.torch.to_owned()).collect(),
            events,
            bounds: requests.bounds(),
        };
        let asked = vec![(RECORDED, terms(&opened.recorded, profile, requests.capacity())?)];
        let times = Times::of(&steps_us);
        Ok((Self { requests, conf, profile, times, asked, runs: Vec::new(), search: None }, opened))
    }

    /// Takes a message. Returns what can be answered at once.
    pub fn receive(&mut self, message: ToWhatIf) -> Vec<FromWhatIf> {
        match message {
            ToWhatIf::Run { id, wish } => match self.terms(&wish) {
                Ok(terms) => {
                    self.asked.push((id, terms));
                    Vec::new()
                }
                Err(sentence) => vec![FromWhatIf::Ran(id, Err(sentence))],
            },
            ToWhatIf::Forget(id) => {
                self.asked.retain(|asked| asked.0 != id);
                self.runs.retain(|run| run.id != id);
                Vec::new()
            }
            ToWhatIf::Curves(asked) => vec![self.curves(asked)],
            ToWhatIf::Tune { wish, goal } => match self.terms(&Wish { conf: self.conf.clone(), ..wish }) {
                Ok(terms) => {
                    self.search = Some(Searching::new(terms, &self.conf, goal));
                    Vec::new()
                }
                Err(sentence) => vec![FromWhatIf::Tuned(Err(sentence))],
            },
            ToWhatIf::Cancel => self.end_search(Ok(false)),
        }
    }

    fn terms(&self, wish: &Wish) -> Result<Terms, String> {
        terms(wish, self.profile, self.requests.capacity())
    }

    fn curves(&self, asked: CurvesAsked) -> FromWhatIf {
        /// More columns than any screen has.
        const MOST: u32 = 1 << 14;
        let asked = CurvesAsked { columns: asked.columns.min(MOST), ..asked };
        let curves = self.runs.iter().map(|run| curve(run.id, &run.course, run.stopped_at, &self.times, &asked));
        FromWhatIf::Curves(asked, curves.collect())
    }

    /// Does the next piece of work. Returns what there is to say about it; `None` if there is nothing to do.
    pub fn work(&mut self) -> Option<Vec<FromWhatIf>> {
        if !self.asked.is_empty() {
            let (id, terms) = self.asked.remove(0);
            return Some(vec![self.run(id, terms)]);
        }
        if let Some(search) = &mut self.search {
            return Some(match search.step(&self.requests) {
                Ok(Some(progress)) => vec![progress],
                Ok(None) => self.end_search(Ok(true)),
                Err(sentence) => self.end_search(Err(sentence)),
            });
        }
        let run = self.runs.iter_mut().find(|run| !run.is_measured)?;
        run.is_measured = true;
        let smallest = self.requests.smallest_capacity(&run.terms).map_err(|error| refused(&error));
        Some(vec![FromWhatIf::Smallest(run.id, smallest)])
    }

    /// Ends the search: with what was found and whether that is all, or with an error.
    fn end_search(&mut self, end: Result<bool, String>) -> Vec<FromWhatIf> {
        let Some(search) = self.search.take() else { return Vec::new() };
        let found =
            end.and_then(|is_complete| search.end(&self.requests, is_complete).map(Box::new).ok_or_else(String::new));
        vec![FromWhatIf::Tuned(found)]
    }

    fn run(&mut self, id: u32, terms: Terms) -> FromWhatIf {
        match self.requests.run_course(&terms) {
            Ok((outcome, course)) => {
                self.runs.push(Run { id, terms, course, stopped_at: outcome.stopped_at, is_measured: false });
                FromWhatIf::Ran(id, Ok(outcome))
            }
            Err(error) => FromWhatIf::Ran(id, Err(refused(&error))),
        }
    }
}

/// Returns the release under which most of the trace comes out as recorded.
fn best(
    requests: &Requests,
    profiles: Vec<&'static Profile>,
    conf: &str,
) -> Result<(&'static Profile, SelfCheck), String> {
    let mut best: Option<(&'static Profile, SelfCheck)> = None;
    let mut failed = String::new();
    for profile in profiles {
        let config = match AllocatorConfig::from_conf(conf, profile) {
            Ok(config) => config,
            Err(error) => {
                failed = format!("The settings of the recording can't be read: {error}");
                continue;
            }
        };
        let check = requests.check(&Terms::ample(profile, config)).map_err(|error| refused(&error))?;
        if best.as_ref().is_none_or(|(_, known)| check.equal > known.equal) {
            best = Some((profile, check));
        }
    }
    best.ok_or(failed)
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
