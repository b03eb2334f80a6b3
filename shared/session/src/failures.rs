//! The finding about a device's failed requests, which the summary has; a running job's is made at each refresh.

use super::caches::Cache;
use analysis::oom;
use analysis::roles::Roles;
use analysis::site::Sites;
use analysis::usage::Usage;
use doctor::Case;
use query::finding::{Finding, Integrity};
use replay::Replay;
use trace::{DeviceTrace, Snapshot};

/// The failed request that matters most: its position and its facts.
#[derive(Debug, Default)]
pub(super) struct DecisiveFailure(Option<(u32, String)>);

impl DecisiveFailure {
    /// Returns the finding about a device's failed requests, if there are any.
    pub(super) fn finding(&mut self, case: &Case<'_>, failures: &[(u32, u64)]) -> Option<Finding> {
        let decisive = oom::decisive(case.trace, failures)?;
        let known = self.0.take().filter(|(position, _)| *position == decisive);
        let (_, facts) = self.0.insert(match known {
            Some(known) => known,
            None => (decisive, doctor::failure_facts(case, decisive)?),
        });
        Some(doctor::failure_finding(case.trace, decisive, facts, failures.len() as u32))
    }
}

impl Cache for DecisiveFailure {
    fn bytes(&self) -> usize {
        0
    }

    fn forget_categories(&mut self) {}
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
