//! Announcements for screen readers: the progress of reading a file, the state of a job, and out-of-memory events. The
//! elements always exist, since browsers don't reliably announce the first text of a new one.

use trace::units::Count;
use yew::prelude::*;

use super::live_bar::state_of;
use crate::model::{Live, Model, Phase};
use crate::worker::message::Stage;

/// Progress is announced each time this many more per cent are done.
const STEP: u64 = 25;

/// Renders the two elements: the first is announced when the screen reader is silent, the second interrupts it.
pub fn announcer(model: &Model) -> Html {
    html! {
        <>
            <p class="visually-hidden" aria-live="polite" data-testid="announced">{ progress(model) }</p>
            <p class="visually-hidden" aria-live="assertive" data-testid="alarm">{ alarm(model) }</p>
        </>
    }
}

/// Describes the progress or the state of the current file.
fn progress(model: &Model) -> String {
    let Some(file) = model.file() else { return String::new() };
    match &file.phase {
        Phase::Loading { stage, done, total, .. } => {
            let what = match stage {
                // The page of a session that is being opened describes this itself.
                Stage::Waiting => return String::new(),
                Stage::Reading => "Reading",
                Stage::Indexing => "Indexing",
            };
            match done.saturating_mul(100).checked_div(*total).unwrap_or(0) / STEP * STEP {
                0 => format!("{what} {}", file.name),
                percent => format!("{what} {}: {percent} %", file.name),
            }
        }
        Phase::Ready { .. } => match &file.live {
            Some(live) => format!("{}: {}", file.name, state_of(live).1),
            None => {
                let verdict =
                    model.diagnosis().map(|whole| &whole.verdict).filter(|verdict| verdict.position.is_none());
                format!("{} is open. {}", file.name, verdict.map_or("", |verdict| &verdict.headline))
            }
        },
        Phase::Sweep(sweep) => format!("{} is open. {}", file.name, sweep.verdict),
        // The page of a failure is an alert itself, and a file that was put away is read again at once.
        Phase::Failed { .. } | Phase::Away => String::new(),
    }
}

/// Describes the failure that matters most. For a running job, a card that is an alert itself shows it.
fn alarm(model: &Model) -> String {
    if model.live().is_some_and(Live::is_open) {
        return String::new();
    }
    let verdict = model.diagnosis().map(|whole| &whole.verdict);
    verdict.and_then(|verdict| Some((verdict.position?, verdict))).map_or_else(String::new, |(position, verdict)| {
        format!("Out of memory at event {}. {}", Count(position.into()), verdict.headline)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Action, FileKey, update};

    #[test]
    fn progress_is_announced_in_few_steps() {
        let added = Action::FileAdded { key: FileKey(1), name: "run.pickle".to_owned(), size: 1_000 };
        let mut model = update(&Model::default(), added);
        let mut said = Vec::new();
        for done in 0..=100 {
            let (stage, total, bytes_per_second) = (Stage::Reading, 100, 0.0);
            model = update(&model, Action::FileProgress { key: FileKey(1), stage, done, total, bytes_per_second });
            said.push(progress(&model));
        }
        said.dedup();
        assert_eq!(
            said,
            [
                "Reading run.pickle",
                "Reading run.pickle: 25 %",
                "Reading run.pickle: 50 %",
                "Reading run.pickle: 75 %",
                "Reading run.pickle: 100 %"
            ]
        );
        assert_eq!(alarm(&model), "");
    }
}
