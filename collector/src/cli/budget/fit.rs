//! Whether a model fits on a card, and its largest batch there: by formula, and by simulation.

use budget::{LargestBatch, Model, Plan, largest_batch};
use format::sweep::{Largest, Run};
use serde::Serialize;
use trace::units::{Bytes, Count};
use whatif::Card;

use super::simulation::{self, STEPS};
use crate::cli::parallel;
use crate::cli::progress::Progress;
use crate::cli::setting;
use crate::cli::sweep::{Grid, cores, largest, measured};
use crate::workloads::{ClockedSim, Setup, run_model};

/// A model on a card.
#[derive(Serialize)]
pub(super) struct Fit {
    /// The name of the card.
    pub(super) card: &'static str,
    /// The bytes that a process can have of it for its tensors.
    pub(super) usable_bytes: u64,
    /// Whether the planned peak is less.
    pub(super) fits: bool,
    /// The largest batch by formula, without working memory and fragmentation.
    pub(super) planned: LargestBatch,
    /// The largest batch that was simulated, and the one after it, which failed.
    pub(super) simulated: Option<Largest>,
    /// Why nothing was simulated.
    pub(super) not_simulated: Option<String>,
}

impl Fit {
    /// Plans and simulates a model on a card.
    pub(super) fn new(model: &Model, plan: &Plan, card: &'static Card, conf: &str) -> Result<Self, String> {
        let usable_bytes = card.usable();
        let planned = largest_batch(model, usable_bytes);
        let (simulated, not_simulated) = match simulation::is_within_reach(model, plan) {
            Ok(()) if model.params.is_some() => {
                (None, Some("--params names weights that the shape doesn't have.".to_owned()))
            }
            Ok(()) => (simulate(model, planned.batch, usable_bytes, conf)?, None),
            Err(sentence) => (None, Some(sentence)),
        };
        let fits = plan.peak_bytes <= usable_bytes;
        Ok(Self { card: card.name, usable_bytes, fits, planned, simulated, not_simulated })
    }
}

/// Finds the largest batch that trains without a failed request, near the planned one.
fn simulate(model: &Model, planned: u64, capacity: u64, conf: &str) -> Result<Option<Largest>, String> {
    let (profile, config) = setting::allocator("2.11", conf)?;
    let setup = Setup { capacity, profile, config, ..Setup::default() };
    let run = |batch: u64| -> Result<Run, String> {
        let mut worst: Option<Run> = None;
        for share in (Model { batch, ..*model }).shares() {
            let outcome = run_model(&share, STEPS, &setup, ClockedSim::new(capacity));
            let row = measured(&batch.to_string(), &outcome)?;
            // A device that fails decides, and else the one that needs most.
            let is_worse = |than: &Run| (row.fits, than.peak_reserved) < (than.fits, row.peak_reserved);
            if worst.as_ref().is_none_or(is_worse) {
                worst = Some(row);
            }
        }
        worst.ok_or_else(|| "there is nothing to simulate.".to_owned())
    };
    // The simulation needs working memory that the formula leaves out, and rounds; the recomputation of a segment may need
    // less.
    let mut batches = vec![1, planned / 2, planned, planned + 1, planned + planned / 4 + 2];
    batches.retain(|batch| *batch > 0);
    batches.sort_unstable();
    batches.dedup();
    let progress = Progress::new("Simulating");
    let all = |batches: &[u64]| -> Result<Vec<Run>, String> {
        progress.show(|| "Simulating".to_owned());
        parallel::map(batches, |batch| run(*batch), |_| {}).into_iter().collect()
    };
    let rows: Vec<(u64, Run)> = batches.iter().copied().zip(all(&batches)?).collect();
    largest(&rows, Grid { first: 1, step: 1 }, cores(), all)
}

impl std::fmt::Display for Fit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let planned = &self.planned;
        let peak = Bytes(planned.peak_bytes);
        if planned.batch == 0 {
            writeln!(f, "  not even a batch of 1 fits: it needs {peak}")?;
        } else {
            let batch = Count(planned.batch);
            writeln!(f, "  largest batch by formula: {batch}, with {peak} at the peak, without working memory")?;
        }
        match (&self.simulated, &self.not_simulated) {
            (Some(Largest::Between { fits, fails }), _) => writeln!(
                f,
                "  largest batch simulated:  {}, with {} reserved at the peak; with {}, a request of {} fails",
                fits.value,
                Bytes(fits.peak_reserved),
                fails.value,
                Bytes(fails.failed_request.unwrap_or(0))
            ),
            (Some(Largest::Beyond { fits }), _) => {
                writeln!(
                    f,
                    "  simulated: a batch of {} fits, with {} reserved at the peak",
                    fits.value,
                    Bytes(fits.peak_reserved)
                )
            }
            (Some(Largest::Below { fails }), _) => writeln!(
                f,
                "  simulated: a batch of 1 fails at a request of {}",
                Bytes(fails.failed_request.unwrap_or(0))
            ),
            (None, Some(why)) => writeln!(f, "  not simulated: {why}"),
            (None, None) => Ok(()),
        }
    }
}
