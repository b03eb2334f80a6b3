//! The diagnosis of a device, made when it is asked for.

use super::context::Context;
use super::device::Caches;
use analysis::oom;
use analysis::roles::Roles;
use analysis::site::Sites;
use analysis::usage::Usage;
use doctor::Case;
use query::Answer;
use query::diagnosis::Diagnosis;
use query::finding::{Finding, Integrity};
use replay::Replay;
use trace::{DeviceTrace, Snapshot};

/// What was found last.
#[derive(Debug, Default)]
pub(super) struct LastDiagnosis {
    /// The diagnosis, with the number of events that it covers.
    whole: Option<(u32, Box<Diagnosis>)>,
    /// The position of the failed request that matters most, and its facts.
    failure: Option<(u32, String)>,
}

impl LastDiagnosis {
    /// Forgets the diagnosis: it names categories, whose rules have changed.
    pub(super) fn forget(&mut self) {
        self.whole = None;
    }

    /// Returns the finding about a device's failed requests, if there are any. A running job's is asked for often.
    pub(super) fn failure(&mut self, case: &Case<'_>, failures: &[(u32, u64)]) -> Option<Finding> {
        let decisive = oom::decisive(case.trace, failures)?;
        let known = self.failure.take().filter(|(position, _)| *position == decisive);
        let (_, facts) = self.failure.insert(match known {
            Some(known) => known,
            None => (decisive, doctor::failure_facts(case, decisive)?),
        });
        Some(doctor::failure_finding(case.trace, decisive, facts, failures.len() as u32))
    }
}

/// Answers [`Query::Diagnosis`](query::Query::Diagnosis).
pub(super) fn answer(context: Context<'_>, caches: &mut Caches) -> Answer {
    let positions = context.replay.positions();
    let known = caches.diagnosis.whole.take().filter(|(covered, _)| *covered == positions);
    let diagnosis = match known {
        Some((_, diagnosis)) => diagnosis,
        None => caches.told.lend(context, |roles| Box::new(doctor::diagnose(&case(context, roles)))),
    };
    caches.diagnosis.whole = Some((positions, diagnosis.clone()));
    Answer::Diagnosis(diagnosis)
}

/// Answers [`Query::FailureDiagnosis`](query::Query::FailureDiagnosis).
pub(super) fn of_failure(context: Context<'_>, caches: &mut Caches, position: u32) -> Answer {
    match caches.told.lend(context, |roles| doctor::diagnose_failure(&case(context, roles), position)) {
        Some(diagnosis) => Answer::Diagnosis(Box::new(diagnosis)),
        None => Answer::Refused("No request failed there.".to_owned()),
    }
}

/// Returns what the doctor looks at.
fn case<'a>(context: Context<'a>, roles: &'a Roles) -> Case<'a> {
    let Context { snapshot, trace, sites, replay, usage, summary, integrity, .. } = context;
    let capacity = Some(summary.capacity).filter(|bytes| *bytes > 0);
    Case { capacity, ..case_of(snapshot, (trace, integrity), sites, (replay, usage), roles) }
}

/// Returns what the doctor looks at while a device has no summary yet: its capacity is not known.
pub(super) fn case_of<'a>(
    snapshot: &'a Snapshot,
    (trace, integrity): (&'a DeviceTrace, Integrity),
    sites: &'a Sites,
    (replay, usage): (&'a Replay, &'a Usage),
    roles: &'a Roles,
) -> Case<'a> {
    Case {
        trace,
        tags: &snapshot.tags,
        symbols: &snapshot.symbols,
        best_frames: sites.best_frames(),
        settings: &snapshot.settings,
        replay,
        usage,
        roles,
        capacity: None,
        integrity,
    }
}
