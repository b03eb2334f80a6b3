//! The diagnosis of a device, made when it is asked for.

use super::Answering;
use crate::caches::{Cache, Caches};
use crate::categories::CategoryCache;
use crate::context::Context;
use crate::failures::case_of;
use analysis::roles::Roles;
use doctor::Case;
use query::DeviceSummary;
use query::diagnosis::{Diagnosis, DiagnosisQuery, FailureDiagnosisQuery};

/// The last diagnosis, with the number of events that it covers.
#[derive(Debug, Default)]
struct LastDiagnosis(Option<(u32, Box<Diagnosis>)>);

impl Cache for LastDiagnosis {
    fn bytes(&self) -> usize {
        0
    }

    fn forget_categories(&mut self) {
        self.0 = None;
    }
}

impl Answering for DiagnosisQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Box<Diagnosis>, String> {
        let positions = context.replay.positions();
        let known = caches.of::<LastDiagnosis>().0.take().filter(|(covered, _)| *covered == positions);
        let diagnosis = match known {
            Some((_, diagnosis)) => diagnosis,
            None => {
                let cache = caches.of::<CategoryCache>();
                cache.lend(context, |roles| Box::new(doctor::diagnose(&case(context, roles))))
            }
        };
        caches.of::<LastDiagnosis>().0 = Some((positions, diagnosis.clone()));
        Ok(diagnosis)
    }

    fn examples(_: &DeviceSummary) -> Vec<Self> {
        vec![Self]
    }
}

impl Answering for FailureDiagnosisQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Box<Diagnosis>, String> {
        let cache = caches.of::<CategoryCache>();
        let found = cache.lend(context, |roles| doctor::diagnose_failure(&case(context, roles), self.position));
        found.map(Box::new).ok_or_else(|| "No request failed there.".to_owned())
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let failed = device.ooms.iter().map(|(position, _)| *position).take(3);
        failed.chain([0]).map(|position| Self { position }).collect()
    }
}

/// Returns what the doctor looks at.
fn case<'a>(context: Context<'a>, roles: &'a Roles) -> Case<'a> {
    let Context { snapshot, trace, sites, replay, usage, summary, integrity, .. } = context;
    let capacity = Some(summary.capacity).filter(|bytes| *bytes > 0);
    Case { capacity, ..case_of(snapshot, (trace, integrity), sites, (replay, usage), roles) }
}
