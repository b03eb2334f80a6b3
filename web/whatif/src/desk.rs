//! Answers questions about one device's requests, one piece of work at a time, the quickest first: runs, then the
//! advice of verdicts, then the next settings of a search, then the least memory of each run.

use allocator::{DriverError, Profile};
use protocol::whatif::{CurvesAsked, FromWhatIf, Opened, RECORDED, RunConditions, ToWhatIf};
use query::diagnosis::Verdict;
use session::RecordedRequests;
use trace::text::escaped;
use whatif::{Baseline, BaselineError, CapacitySearch, Requests, ReservedCurve, Terms};

use crate::axis::Times;
use crate::conditions::terms;
use crate::curve::curve;
use crate::search::Searching;

/// Returns the sentence for requests that the allocator can't even begin with.
fn refused(error: &DriverError) -> String {
    format!("This trace can't be run again: {error}.")
}

/// Returns why the run can't be repeated even as it was recorded.
fn sentence(error: &BaselineError) -> String {
    match error {
        BaselineError::Settings { conf, message } => {
            format!("The recorded settings “{}” can't be read: {message}", escaped(conf))
        }
        BaselineError::State(error) => refused(error),
    }
}

/// The state of one device's requests, and the work that is left.
#[derive(Debug)]
pub struct Desk {
    requests: Requests,
    conf: String,
    baseline: Baseline,
    /// The memory that the process could have, in bytes, if the trace shows it.
    capacity: Option<u64>,
    times: Times,
    /// Runs that are asked for, the newest last.
    asked: Vec<(u32, Terms)>,
    runs: Vec<FinishedRun>,
    /// Verdicts whose advice is to be checked.
    verdicts: Vec<Verdict>,
    search: Option<Searching>,
    /// The search for a run's least memory that is under way.
    measuring: Option<(u32, CapacitySearch)>,
}

/// A run that is done.
#[derive(Debug)]
struct FinishedRun {
    id: u32,
    terms: Terms,
    reserved: ReservedCurve,
    stopped_at: Option<u32>,
    /// Whether its least memory is known.
    is_measured: bool,
}

impl Desk {
    /// Takes a device's requests, and answers them under the settings of the recording. The error is a sentence.
    pub fn open(recorded: RecordedRequests) -> Result<(Self, Opened), String> {
        let RecordedRequests { requests, settings, marks, torch, device_bytes, events, steps_us } = recorded;
        if requests.is_empty() {
            return Err("This trace has no request for memory, so there is nothing to run again.".to_owned());
        }
        let told = Profile::of(&torch).map(|profile| vec![profile]);
        let profiles = told.unwrap_or_else(|| Profile::candidates(&settings, &marks));
        let conf = settings.conf;
        let baseline = requests.baseline(&profiles, &conf).map_err(|error| sentence(&error))?;
        let profile = baseline.profile;
        let capacity = requests.capacity().or(device_bytes);
        let opened = Opened {
            check: baseline.check.clone(),
            recorded: RunConditions { conf: conf.clone(), torch: profile.torch.to_owned(), ..RunConditions::default() },
            capacity,
            releases: Profile::ALL.iter().map(|profile| profile.torch.to_owned()).collect(),
            events,
            bounds: requests.bounds(),
            at_start: requests.reserved_at_start(),
        };
        let asked = vec![(RECORDED, terms(&opened.recorded, profile, capacity)?)];
        let times = Times::of(&steps_us);
        let (runs, verdicts, search, measuring) = (Vec::new(), Vec::new(), None, None);
        Ok((Self { requests, conf, baseline, capacity, times, asked, runs, verdicts, search, measuring }, opened))
    }

    /// Takes a message. Returns what can be answered at once.
    pub fn receive(&mut self, message: ToWhatIf) -> Vec<FromWhatIf> {
        match message {
            ToWhatIf::Run { id, conditions } => match self.terms(&conditions) {
                Ok(terms) => {
                    self.asked.push((id, terms));
                    Vec::new()
                }
                Err(sentence) => vec![FromWhatIf::Ran(id, Err(sentence))],
            },
            ToWhatIf::Forget(id) => {
                self.asked.retain(|asked| asked.0 != id);
                self.runs.retain(|run| run.id != id);
                self.measuring.take_if(|(measured, _)| *measured == id);
                Vec::new()
            }
            ToWhatIf::Prove(verdict) => {
                self.verdicts.push(*verdict);
                Vec::new()
            }
            // Its answer is sent together with bytes.
            ToWhatIf::Trace(_) => Vec::new(),
            ToWhatIf::Curves(asked) => vec![self.curves(asked)],
            ToWhatIf::Tune { conditions, goal } => {
                match self.terms(&RunConditions { conf: self.conf.clone(), ..conditions }) {
                    Ok(terms) => {
                        self.search = Some(Searching::new(terms, &self.conf, goal));
                        Vec::new()
                    }
                    Err(sentence) => vec![FromWhatIf::Tuned(Err(sentence))],
                }
            }
            ToWhatIf::Cancel => self.end_search(Ok(false)),
        }
    }

    fn terms(&self, conditions: &RunConditions) -> Result<Terms, String> {
        terms(conditions, self.baseline.profile, self.capacity)
    }

    fn curves(&self, asked: CurvesAsked) -> FromWhatIf {
        /// More columns than any screen has.
        const MOST: u32 = 1 << 14;
        let asked = CurvesAsked { columns: asked.columns.min(MOST), ..asked };
        let curves = self.runs.iter().map(|run| curve(run.id, &run.reserved, run.stopped_at, &self.times, &asked));
        FromWhatIf::Curves(asked, curves.collect())
    }

    /// Returns every event of a run as bytes; `None` if there is no such run.
    pub fn trace(&self, id: u32) -> Option<Vec<u8>> {
        let run = self.runs.iter().find(|run| run.id == id)?;
        Some(self.requests.run_trace(&run.terms).ok()?.1.to_bytes())
    }

    /// Does the next piece of work. Returns what there is to say about it; `None` if there is nothing to do.
    pub fn work(&mut self) -> Option<Vec<FromWhatIf>> {
        if !self.asked.is_empty() {
            let (id, terms) = self.asked.remove(0);
            return Some(vec![self.run(id, terms)]);
        }
        if let Some(mut verdict) = self.verdicts.pop() {
            self.requests.prove(&mut verdict, &self.baseline, &self.conf);
            return Some(vec![FromWhatIf::Proven(verdict.position.unwrap_or_default(), verdict.remedies)]);
        }
        if let Some(search) = &mut self.search {
            return Some(match search.step(&self.requests) {
                Ok(Some(progress)) => vec![progress],
                Ok(None) => self.end_search(Ok(true)),
                Err(sentence) => self.end_search(Err(sentence)),
            });
        }
        if self.measuring.is_none() {
            let run = self.runs.iter_mut().find(|run| !run.is_measured)?;
            run.is_measured = true;
            self.measuring = Some((run.id, CapacitySearch::new(&run.terms)));
        }
        let (id, search) = self.measuring.as_mut()?;
        let id = *id;
        let found = search.step(&self.requests).map_err(|error| refused(&error)).transpose();
        Some(
            found
                .into_iter()
                .map(|found| {
                    self.measuring = None;
                    FromWhatIf::Smallest(id, found)
                })
                .collect(),
        )
    }

    /// Ends the search: with what was found and whether that is all, or with an error.
    fn end_search(&mut self, end: Result<bool, String>) -> Vec<FromWhatIf> {
        let Some(search) = self.search.take() else { return Vec::new() };
        let found =
            end.and_then(|is_complete| search.end(&self.requests, is_complete).map(Box::new).ok_or_else(String::new));
        vec![FromWhatIf::Tuned(found)]
    }

    fn run(&mut self, id: u32, terms: Terms) -> FromWhatIf {
        match self.requests.run_with_curve(&terms) {
            Ok((outcome, reserved)) => {
                self.runs.push(FinishedRun { id, terms, reserved, stopped_at: outcome.stopped_at, is_measured: false });
                FromWhatIf::Ran(id, Ok(outcome))
            }
            Err(error) => FromWhatIf::Ran(id, Err(refused(&error))),
        }
    }
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
