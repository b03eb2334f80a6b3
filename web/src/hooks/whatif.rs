//! A device's requests under other settings: reads them, and runs what a person wants.

use std::rc::Rc;

use protocol::whatif::ToWhatIf;
use query::diagnosis::Verdict;
use query::finding::Remedy;
use yew::prelude::*;

use super::ModelHandle;
use crate::browser::use_effect_with;
use crate::model::{
    Action, Curves, CurvesAsked, FileKey, Goal, Live, MOST_RUNS, RunConditions, Tab, Tune, WhatIf, WhatIfStep,
};
use crate::worker::CurvesFor;

/// Reads the requests of the current device, so far as they have come, into a new worker.
pub fn open_whatif(model: &ModelHandle) {
    let now = model.now();
    let Some(key) = now.current else { return };
    let device = now.view.device;
    // What it may still say is of other requests.
    model.workers().desks().close(key);
    step(model, key, WhatIfStep::Opening(device));
    let handle = model.clone();
    model.workers().requests(
        key,
        device,
        Callback::from(move |requests| {
            let model = handle.clone();
            let hear = Callback::from(move |said| {
                let was_searching = is_searching(&model, key);
                step(&model, key, WhatIfStep::Heard(Box::new(said)));
                if was_searching && !is_searching(&model, key) && model.now().current == Some(key) {
                    add_recommended(&model);
                }
                if model.now().entry(key).and_then(|file| file.whatif.as_ref()).is_some_and(|whatif| is_due(whatif)) {
                    start_tune(&model, key);
                }
            });
            handle.workers().desks().start(key, &requests, hear);
            let now = handle.now();
            let whatif = now.entry(key).and_then(|file| file.whatif.as_ref());
            if let Some((_, verdict)) = whatif.and_then(|whatif| whatif.wants_proof.clone()) {
                handle.workers().desks().tell(key, &ToWhatIf::Prove(verdict));
            }
        }),
    );
}

/// Whether a search was wanted before it could begin.
fn is_due(whatif: &WhatIf) -> bool {
    whatif.wants_tune && whatif.recorded().is_some()
}

fn is_searching(model: &ModelHandle, key: FileKey) -> bool {
    let now = model.now();
    let whatif = now.entry(key).and_then(|file| file.whatif.as_ref());
    whatif.is_some_and(|whatif| matches!(whatif.tune, Tune::Running { .. }))
}

/// Runs what a search has recommended beside the recorded settings, unless a person has added runs.
fn add_recommended(model: &ModelHandle) {
    let now = model.now();
    let Some(whatif) = now.whatif().filter(|whatif| whatif.runs.len() == 1) else { return };
    if let Tune::Done(tuned) = &whatif.tune
        && let Some(conf) = tuned.tuning.advice.conf.clone().filter(|_| tuned.is_complete)
        && !tuned.tuning.groups.iter().any(|group| group.is_recorded && group.confs.contains(&conf))
    {
        add_run(model, &RunConditions { conf, ..whatif.draft.clone() });
    }
}

/// Runs the requests under what a person wrote.
pub fn add_run(model: &ModelHandle, conditions: &RunConditions) {
    let now = model.now();
    let (Some(key), Some(whatif)) = (now.current, now.whatif()) else { return };
    if whatif.opened.is_none() || whatif.runs.len() >= MOST_RUNS {
        return;
    }
    step(model, key, WhatIfStep::Added(Box::new(conditions.clone())));
    let id = model.now().whatif().map_or(0, |whatif| whatif.last_id);
    model.workers().desks().tell(key, &ToWhatIf::Run { id, conditions: conditions.clone() });
}

/// Removes a run.
pub fn remove_run(model: &ModelHandle, id: u32) {
    if let Some(key) = model.now().current {
        step(model, key, WhatIfStep::Removed(id));
        model.workers().desks().tell(key, &ToWhatIf::Forget(id));
    }
}

/// The reserved memory of the current file's runs in columns of an axis, asked for again when a run is done. `None` while
/// nothing was run, and if nobody wants them.
#[hook]
pub fn use_curves(model: &ModelHandle, by: CurvesFor, asked: Option<CurvesAsked>) -> Option<Rc<Curves>> {
    let curves = use_state(|| None::<Rc<Curves>>);
    let revision = model.whatif().filter(|_| asked.is_some()).map_or(0, |whatif| whatif.revision);
    {
        let (model, set) = (model.clone(), curves.setter());
        use_effect_with(
            (model.current, model.view.device, revision, asked),
            move |(current, _, revision, asked)| match (
                current,
                asked.filter(|asked| asked.columns > 0 && *revision > 0),
            ) {
                (Some(key), Some(asked)) => {
                    let reply = Callback::from(move |curves| set.set(Some(Rc::new(curves))));
                    model.workers().desks().ask_curves(*key, by, asked, reply);
                }
                _ => set.set(None),
            },
        );
    }
    (*curves).clone()
}

/// The most events of a device whose verdict is checked without being asked for: so many are read and run in a second.
const PROVEN_EVENTS: u32 = 1_000_000;

/// What to try after a failed request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tries {
    /// The remedies, as far as they are known.
    pub remedies: Vec<Remedy>,
    /// Where those will stand that are still being checked, if any are.
    pub checking: Option<usize>,
}

impl Tries {
    /// Returns the remedies of a verdict. While settings are checked, they are left out: one that serves the request comes to
    /// stand in their place, and others go.
    fn of(verdict: &Verdict, remedies: &[Remedy], is_checking: bool) -> Self {
        let known = |remedy: &&Remedy| !is_checking || remedy.setting().is_none();
        let remedies: Vec<Remedy> = remedies.iter().filter(known).cloned().collect();
        let place = usize::from(verdict.is_growing).min(remedies.len());
        Self { remedies, checking: is_checking.then_some(place) }
    }
}

/// What to try after a failed request: checked on the trace, as soon as that is done.
#[hook]
pub fn use_remedies(model: &ModelHandle, verdict: Option<&Verdict>) -> Tries {
    let device = model.device().map_or(0, |device| device.events);
    let is_still = !model.is_preview() && !model.live().is_some_and(Live::is_open);
    let asked = verdict.filter(|verdict| is_still && device <= PROVEN_EVENTS && verdict.can_be_proven());
    let is_checking = asked.is_some() && model.whatif().is_none_or(|whatif| whatif.is_checking());
    {
        let (model, asked) = (model.clone(), asked.cloned());
        let position = asked.as_ref().and_then(|verdict| verdict.position);
        use_effect_with((model.current, model.view.device, position), move |(key, ..)| {
            if let (Some(key), Some(verdict)) = (*key, asked) {
                prove(&model, key, verdict);
            }
        });
    }
    let Some(verdict) = verdict else { return Tries::default() };
    let remedies = model.whatif().map_or(&*verdict.remedies, |whatif| whatif.remedies(verdict));
    Tries::of(verdict, remedies, is_checking)
}

fn prove(model: &ModelHandle, key: FileKey, verdict: Verdict) {
    let verdict = Box::new(verdict);
    let now = model.now();
    let is_known = now.whatif().is_some();
    step(model, key, WhatIfStep::ProofWanted(now.view.device, verdict.clone()));
    if is_known {
        // While the requests are still being read there is nobody to tell; it is done once they are.
        model.workers().desks().tell(key, &ToWhatIf::Prove(verdict));
    } else {
        open_whatif(model);
    }
}

/// Changes what a person is about to try.
pub fn change_whatif(model: &ModelHandle, change: WhatIfStep) {
    if let Some(key) = model.now().current {
        step(model, key, change);
    }
}

/// Shows the tab, and searches for better settings as soon as the requests are read: for what a person has chosen.
pub fn find_settings(model: &ModelHandle) {
    search(model, None);
}

/// Shows the tab, and searches for settings under which no request fails, if one did and nothing was tried yet.
pub fn find_remedy(model: &ModelHandle) {
    let now = model.now();
    let is_untouched = now.whatif().is_none_or(|whatif| whatif.is_untouched());
    let has_failed = now.device().is_some_and(|device| !device.ooms.is_empty());
    search(model, (is_untouched && has_failed).then_some(Goal::Fit));
}

fn search(model: &ModelHandle, goal: Option<Goal>) {
    let now = model.now();
    let Some(key) = now.current else { return };
    let is_known = now.whatif().is_some();
    let is_there = now.whatif().is_some_and(|whatif| whatif.recorded().is_some());
    let is_running = now.whatif().is_some_and(|whatif| matches!(whatif.tune, Tune::Running { .. }));
    model.dispatch(Action::SetTab(Tab::WhatIf));
    if now.is_preview() {
        // Only the whole trace can be run.
        return;
    }
    if let Some(goal) = goal {
        step(model, key, WhatIfStep::Goal(goal));
    }
    if is_there && !is_running {
        start_tune(model, key);
    } else if !is_running {
        step(model, key, WhatIfStep::TuneWanted);
        if !is_known {
            open_whatif(model);
        }
    }
}

fn start_tune(model: &ModelHandle, key: FileKey) {
    step(model, key, WhatIfStep::Tuning);
    let now = model.now();
    let Some(whatif) = now.entry(key).and_then(|file| file.whatif.as_ref()) else { return };
    let conditions = RunConditions { capacity: whatif.card.clone(), ..whatif.draft.clone() };
    model.workers().desks().tell(key, &ToWhatIf::Tune { conditions, goal: whatif.goal });
}

/// Ends the search. What it has found so far is shown.
pub fn cancel_tune(model: &ModelHandle) {
    if let Some(key) = model.now().current {
        model.workers().desks().tell(key, &ToWhatIf::Cancel);
    }
}

fn step(model: &ModelHandle, key: FileKey, step: WhatIfStep) {
    model.dispatch(Action::WhatIf { key, step });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_being_checked_have_a_place_and_no_words_yet() {
        let remedies = vec![
            Remedy::advice("Look."),
            Remedy::advice("Set it.").with_copy("PYTORCH_CUDA_ALLOC_CONF=a:1"),
            Remedy::advice("Free.").with_copy("del x"),
        ];
        let texts = |tries: &Tries| tries.remedies.iter().map(|remedy| remedy.text.clone()).collect::<Vec<_>>();
        for (is_growing, place) in [(false, 0), (true, 1)] {
            let verdict = Verdict { is_growing, remedies: remedies.clone(), ..Verdict::default() };
            let tries = Tries::of(&verdict, &remedies, true);
            assert_eq!((texts(&tries), tries.checking), (vec!["Look.".to_owned(), "Free.".to_owned()], Some(place)));
            assert_eq!(Tries::of(&verdict, &remedies, false), Tries { remedies: remedies.clone(), checking: None });
        }
        let verdict = Verdict { is_growing: true, ..Verdict::default() };
        assert_eq!(Tries::of(&verdict, &[], true).checking, Some(0));
    }
}
