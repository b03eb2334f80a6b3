//! The simulation of a planned model's training, compared with the plan.

use budget::{Model, Optimizer, Part, Plan};
use serde::Serialize;
use trace::units::Count;

use crate::cli::setting;
use crate::workloads::{ClockedSim, Outcome, Setup, run_model};

/// Memory of the simulated device by default: more than any device has.
const AMPLE: u64 = 1 << 40;
/// Simulated steps: the optimizer's state exists from the second on.
pub(super) const STEPS: u64 = 2;
/// The most tensors of weights that are simulated, each with some others: a second or two of time.
const MOST_TENSORS: u64 = 1 << 20;
/// The most planned bytes that are simulated, so that the bytes of each tensor fit into 64 bits.
const MOST_BYTES: u64 = 1 << 56;

/// The results of the simulation.
#[derive(Serialize)]
pub(super) struct Simulation {
    /// Weights of the simulated model, computed from its shape.
    pub(super) params: u64,
    /// The peak of each part in requested bytes, compared with the plan.
    pub(super) parts: Vec<Compared>,
    /// Peak of the bytes in use, as requested.
    pub(super) peak_requested: u64,
    /// Peak of the bytes in use, with rounding.
    pub(super) peak_allocated: u64,
    /// Peak of the bytes reserved from the device.
    pub(super) peak_reserved: u64,
    /// Requested peak over planned peak; `None` if the run stopped early.
    pub(super) ratio: Option<f64>,
    /// The error that stopped the simulation.
    pub(super) error: Option<String>,
}

/// A part compared with its plan.
#[derive(Serialize)]
pub(super) struct Compared {
    pub(super) part: Part,
    pub(super) planned_bytes: u64,
    pub(super) simulated_bytes: u64,
    /// Simulated over planned bytes; `None` if nothing was planned.
    pub(super) ratio: Option<f64>,
}

/// Returns why a model can't be simulated, if it can't.
pub(super) fn is_within_reach(model: &Model, plan: &Plan) -> Result<(), String> {
    if model.optimizer == Optimizer::Inference {
        return Err("A simulation trains the model: leave out --optimizer none. To simulate inference, use vramscope \
                    run kv-serving."
            .to_owned());
    }
    let tensors = (model.layer_tensors().len() as u64).saturating_mul(model.layers);
    if tensors > MOST_TENSORS || plan.peak_bytes > MOST_BYTES || model.shape_params() > MOST_BYTES {
        return Err(format!(
            "This model is too large to simulate: at most {} tensors of weights and {} bytes. Leave out --simulate, or \
             simulate fewer layers.",
            Count(MOST_TENSORS),
            Count(MOST_BYTES)
        ));
    }
    Ok(())
}

/// Trains a model on a simulated device: the share of the one that needs most.
pub(super) fn run(model: &Model, plan: &Plan, capacity: Option<&str>, conf: &str) -> Result<Simulation, String> {
    is_within_reach(model, plan)?;
    let capacity = match capacity {
        Some(text) => setting::capacity(text)?,
        None => AMPLE,
    };
    let (profile, config) = setting::allocator("2.11", conf)?;
    let setup = Setup { capacity, profile, config, ..Setup::default() };
    let share = plan.device.as_ref().map_or(model, |device| &device.model);
    let outcome = run_model(share, STEPS, &setup, ClockedSim::new(capacity));
    Ok(Simulation::new(share, plan, &outcome))
}

impl Simulation {
    fn new(model: &Model, plan: &Plan, outcome: &Outcome) -> Self {
        let compared = |part: Part| {
            let (planned_bytes, simulated_bytes) = (plan.bytes(part), outcome.part(part));
            // A run that stopped halfway has nothing to compare.
            let is_comparable = planned_bytes > 0 && outcome.error.is_none();
            let ratio = is_comparable.then(|| simulated_bytes as f64 / planned_bytes as f64);
            Compared { part, planned_bytes, simulated_bytes, ratio }
        };
        // Leaves out what the simulation does not cover.
        let is_there = |compared: &Compared| {
            compared.part != Part::KvCache && (compared.planned_bytes > 0 || compared.simulated_bytes > 0)
        };
        let peak = |stat: allocator::StatArray| stat.all.peak.max(0) as u64;
        let peak_requested = peak(outcome.stats.requested_bytes);
        let planned = plan.peak_bytes.saturating_sub(plan.bytes(Part::KvCache)).max(1);
        Self {
            params: model.shape_params(),
            parts: Part::ALL.into_iter().map(compared).filter(is_there).collect(),
            peak_requested,
            peak_allocated: peak(outcome.stats.allocated_bytes),
            peak_reserved: peak(outcome.stats.reserved_bytes),
            ratio: outcome.error.is_none().then(|| peak_requested as f64 / planned as f64),
            error: outcome.error.as_ref().map(ToString::to_string),
        }
    }
}
