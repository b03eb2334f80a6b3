//! A device's requests under other settings: reads them, and runs what a person wants.

use protocol::whatif::ToWhatIf;
use yew::Callback;

use super::ModelHandle;
use crate::model::{Action, Curves, CurvesAsked, FileKey, Goal, MOST_RUNS, Tab, Tune, WhatIf, WhatIfStep, Wish};

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
                step(&model, key, WhatIfStep::Heard(Box::new(said)));
                if model.now().entry(key).and_then(|file| file.whatif.as_ref()).is_some_and(|whatif| is_due(whatif)) {
                    start_tune(&model, key);
                }
            });
            handle.workers().desks().start(key, &requests, hear);
        }),
    );
}

/// Whether a search was wanted before it could begin.
fn is_due(whatif: &WhatIf) -> bool {
    whatif.wants_tune && whatif.recorded().is_some()
}

/// Runs the requests under what a person wrote.
pub fn add_run(model: &ModelHandle, wish: &Wish) {
    let now = model.now();
    let (Some(key), Some(whatif)) = (now.current, now.whatif()) else { return };
    if whatif.opened.is_none() || whatif.runs.len() >= MOST_RUNS {
        return;
    }
    step(model, key, WhatIfStep::Added(Box::new(wish.clone())));
    let id = model.now().whatif().map_or(0, |whatif| whatif.last_id);
    model.workers().desks().tell(key, &ToWhatIf::Run { id, wish: wish.clone() });
}

/// Removes a run.
pub fn remove_run(model: &ModelHandle, id: u32) {
    if let Some(key) = model.now().current {
        step(model, key, WhatIfStep::Removed(id));
        model.workers().desks().tell(key, &ToWhatIf::Forget(id));
    }
}

/// Asks for the curves of the current file's runs. Of questions that pile up only the last one is answered.
pub fn ask_curves(model: &ModelHandle, asked: CurvesAsked, reply: Callback<Curves>) {
    if let Some(key) = model.now().current {
        model.workers().desks().ask_curves(key, asked, reply);
    }
}

/// Changes what a person is about to try.
pub fn change_whatif(model: &ModelHandle, change: WhatIfStep) {
    if let Some(key) = model.now().current {
        step(model, key, change);
    }
}

/// Shows the tab, and searches for better settings as soon as the requests are read.
pub fn find_settings(model: &ModelHandle) {
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
    if !is_known && now.device().is_some_and(|device| !device.ooms.is_empty()) {
        step(model, key, WhatIfStep::Goal(Goal::Fit));
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
    let wish = Wish { capacity: whatif.card.clone(), ..whatif.draft.clone() };
    model.workers().desks().tell(key, &ToWhatIf::Tune { wish, goal: whatif.goal });
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
