//! `vramscope run --tune`: looks for the settings that serve a workload best, and runs it again under them.

use allocator::StatArray;
use format::Header;
use serde::Serialize;
use trace::units::{Bytes, counted, counted_as};

use super::conf;
use super::progress::Progress;
use super::subject::Subject;
use super::tune::{GoalName, Printed};
use crate::workloads::{Choices, ClockedSim, JobError, Outcome, RunControl, Setup, Workload};

/// A workload with the settings that were found for it.
#[derive(Serialize)]
pub(super) struct TunedRun {
    #[serde(flatten)]
    tuning: Printed,
    /// The run under the recommended settings; `None` if there are none.
    rerun: Option<Rerun>,
}

/// A whole run of the workload. Beyond the point where the first run failed, no trace tells what follows; this run does.
#[derive(Serialize)]
struct Rerun {
    conf: String,
    peak_reserved: u64,
    driver_calls: u64,
    retries: u64,
    ooms: u64,
    /// The error that ended it.
    error: Option<String>,
}

impl TunedRun {
    /// Runs a workload on a simulated device, searches for settings, and runs it again under the best.
    pub(super) fn new(
        workload: &Workload,
        choices: &Choices,
        steps: u64,
        setup: &Setup,
        goal: GoalName,
    ) -> Result<Self, String> {
        let run = |setup: &Setup| -> Result<Outcome, String> {
            let _progress = Progress::new(format!("Running {}", workload.name));
            let device = ClockedSim::new(setup.capacity);
            let outcome = crate::workloads::run(workload, choices, steps, setup, device, RunControl::default());
            match &outcome.error {
                None | Some(JobError::OutOfMemory(_)) => Ok(outcome),
                Some(error) => Err(format!("{}: {error}.", workload.name)),
            }
        };
        let Outcome { mut snapshot, .. } = run(setup)?;
        let device = format::Device { number: 0, name: String::new(), capacity: setup.capacity };
        let header = Header { devices: vec![device], ..Header::default() };
        let subject = Subject::of(&mut snapshot, 0, &header, Some(setup.profile))?;
        let tuning = Printed::new(workload.name.to_owned(), subject, goal)?;
        let rerun = match tuning.conf() {
            None => None,
            Some(conf) => {
                let config = conf::from_start("The recommended settings", conf, setup.profile)?;
                let outcome = run(&Setup { config, ..setup.clone() })?;
                Some(Rerun::new(conf.to_owned(), &outcome))
            }
        };
        Ok(Self { tuning, rerun })
    }

    /// Returns the answer as JSON, or as text for people.
    pub(super) fn text(&self, is_json: bool) -> String {
        if is_json {
            return serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        }
        let rerun = self.rerun.as_ref().map(|rerun| format!("\n{rerun}\n")).unwrap_or_default();
        self.tuning.text(false, false) + &rerun
    }
}

impl Rerun {
    fn new(conf: String, outcome: &Outcome) -> Self {
        let stats = &outcome.stats;
        let count = |count: i64| count.max(0) as u64;
        let peak = |stat: StatArray| count(stat.all.peak);
        Self {
            conf,
            peak_reserved: peak(stats.reserved_bytes),
            driver_calls: count(stats.num_device_alloc) + count(stats.num_device_free),
            retries: count(stats.num_alloc_retries),
            ooms: count(stats.num_ooms),
            error: outcome.error.as_ref().map(ToString::to_string),
        }
    }
}

impl std::fmt::Display for Rerun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { peak_reserved, driver_calls, retries, ooms, .. } = self;
        let end = match (&self.error, ooms) {
            (Some(_), _) => "runs out of memory later",
            (None, 0) => "runs to its end",
            (None, _) => "runs to its end, but requests fail",
        };
        let retries = counted_as(*retries, "retry", "retries");
        write!(
            f,
            "Run again with these settings, the whole workload {end}: {} reserved at the peak, {}, {retries}, \
             {}.",
            Bytes(*peak_reserved),
            counted(*driver_calls, "driver call"),
            counted(*ooms, "out-of-memory error")
        )
    }
}
