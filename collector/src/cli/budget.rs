//! `vramscope budget`: the memory that a transformer needs, by formula and by simulation.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;
use shared::budget::{Attention, Checkpointing, Model, Optimizer, Part, Plan, Precision};
use shared::units::{Bytes, Count};

use super::{print, refuse, setting};
use crate::workloads::{ClockedSim, Outcome, Setup, run_model};

/// Memory of the simulated device by default: more than any device has.
const AMPLE: u64 = 1 << 40;
/// Simulated steps: the optimizer's state exists from the second on.
const STEPS: u64 = 2;

/// Number formats as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PrecisionName {
    /// 16-bit weights, with a 32-bit master copy and optimizer state
    Mixed,
    /// 32 bits throughout
    Fp32,
    /// 16 bits throughout
    Bf16,
}

/// Optimizers as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OptimizerName {
    /// Adam or AdamW
    #[value(alias = "adamw")]
    Adam,
    /// SGD with momentum
    Momentum,
    /// Plain SGD
    Sgd,
    /// Inference: no training
    #[value(alias = "inference")]
    None,
}

/// Kinds of attention as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum AttentionName {
    /// Tiled, without the score matrix
    Flash,
    /// With the full score matrix
    Plain,
}

/// The options of `budget`.
#[derive(Args, Debug)]
pub(super) struct Budget {
    /// Number of weights, such as 7e9 [default: computed from the shape]
    #[arg(long, value_name = "N")]
    params: Option<f64>,
    /// Number of layers
    #[arg(long, value_name = "N", default_value_t = 32)]
    layers: u64,
    /// Width of the residual stream
    #[arg(long, value_name = "N", default_value_t = 4096)]
    hidden: u64,
    /// Number of attention heads
    #[arg(long, value_name = "N", default_value_t = 32)]
    heads: u64,
    /// Number of key and value heads [default: same as --heads]
    #[arg(long, value_name = "N")]
    kv_heads: Option<u64>,
    /// Width of the MLP [default: four times --hidden]
    #[arg(long, value_name = "N")]
    ffn: Option<u64>,
    /// Tokens per sequence
    #[arg(long, value_name = "N", default_value_t = 2048)]
    seq: u64,
    /// Sequences per batch
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: u64,
    /// Vocabulary size in tokens
    #[arg(long, value_name = "N", default_value_t = 32_000)]
    vocab: u64,
    /// Number formats
    #[arg(long, value_enum, default_value_t = PrecisionName::Mixed)]
    precision: PrecisionName,
    /// Optimizer
    #[arg(long, value_enum, default_value_t = OptimizerName::Adam)]
    optimizer: OptimizerName,
    /// Attention implementation
    #[arg(long, value_enum, default_value_t = AttentionName::Flash)]
    attention: AttentionName,
    /// Activation checkpointing: none, full (keep the input of every layer), or every-K (of every K-th layer)
    #[arg(long, value_name = "none|full|every-K", default_value = "none")]
    checkpoint: String,
    /// Include dropout masks
    #[arg(long)]
    dropout: bool,
    /// Tokens in the KV cache, over all sequences
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    kv: u64,
    /// Train the same model on a simulated device and compare
    #[arg(long)]
    simulate: bool,
    /// Memory of the simulated device, such as 80GiB [default: 1TiB]
    #[arg(long, value_name = "SIZE", requires = "simulate")]
    capacity: Option<String>,
    /// Allocator settings, as in PYTORCH_CUDA_ALLOC_CONF
    #[arg(long, value_name = "SETTINGS", default_value = "", requires = "simulate")]
    conf: String,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// The printed result.
#[derive(Serialize)]
struct Printed {
    plan: Plan,
    simulation: Option<Simulation>,
}

/// The results of the simulation.
#[derive(Serialize)]
struct Simulation {
    /// Weights of the simulated model, computed from its shape.
    params: u64,
    /// The peak of each part in requested bytes, compared with the plan.
    parts: Vec<Compared>,
    /// Peak of the bytes in use, as requested.
    peak_requested: u64,
    /// Peak of the bytes in use, with rounding.
    peak_allocated: u64,
    /// Peak of the bytes reserved from the device.
    peak_reserved: u64,
    /// Requested peak over planned peak; `None` if the run stopped early.
    ratio: Option<f64>,
    /// The error that stopped the simulation.
    error: Option<String>,
}

/// A part compared with its plan.
#[derive(Serialize)]
struct Compared {
    part: Part,
    planned_bytes: u64,
    simulated_bytes: u64,
    /// Simulated over planned bytes; `None` if nothing was planned.
    ratio: Option<f64>,
}

impl Budget {
    /// Prints the plan.
    pub(super) fn run(self) -> ExitCode {
        match self.plan() {
            Ok(printed) => {
                let text = match self.json {
                    true => serde_json::to_string_pretty(&printed).unwrap_or_default() + "\n",
                    false => text(&printed),
                };
                print(|out| out.write_all(text.as_bytes()))
            }
            Err(sentence) => refuse(&sentence),
        }
    }

    fn plan(&self) -> Result<Printed, String> {
        let model = self.model()?;
        let plan = Plan::new(&model);
        let simulation = if self.simulate { Some(self.simulate(&model, &plan)?) } else { None };
        Ok(Printed { plan, simulation })
    }

    fn model(&self) -> Result<Model, String> {
        let params = match self.params {
            None => None,
            Some(params) if params.is_finite() && params >= 1.0 => Some(params as u64),
            Some(params) => return Err(format!("--params {params} is not a number of weights. Write it like 7e9.")),
        };
        let checkpointing = match (self.checkpoint.as_str(), self.checkpoint.strip_prefix("every-").map(str::parse)) {
            ("none", _) => Checkpointing::None,
            ("full", _) => Checkpointing::Every(1),
            (_, Some(Ok(every))) => Checkpointing::Every(every),
            (given, _) => return Err(format!("--checkpoint {given:?} is unknown. Write none, full or every-4.")),
        };
        let model = Model {
            layers: self.layers,
            hidden: self.hidden,
            heads: self.heads,
            kv_heads: self.kv_heads.unwrap_or(self.heads),
            ffn: self.ffn.unwrap_or(self.hidden.saturating_mul(4)),
            vocab: self.vocab,
            seq: self.seq,
            batch: self.batch,
            params,
            precision: match self.precision {
                PrecisionName::Mixed => Precision::Mixed,
                PrecisionName::Fp32 => Precision::Fp32,
                PrecisionName::Bf16 => Precision::Bf16,
            },
            optimizer: match self.optimizer {
                OptimizerName::Adam => Optimizer::Adam,
                OptimizerName::Momentum => Optimizer::Momentum,
                OptimizerName::Sgd => Optimizer::Sgd,
                OptimizerName::None => Optimizer::Inference,
            },
            attention: match self.attention {
                AttentionName::Flash => Attention::Flash,
                AttentionName::Plain => Attention::Plain,
            },
            checkpointing,
            dropout: self.dropout,
            kv_tokens: self.kv,
        };
        model.check().map_err(|error| format!("Invalid model shape: {error}."))?;
        Ok(model)
    }

    fn simulate(&self, model: &Model, plan: &Plan) -> Result<Simulation, String> {
        if model.optimizer == Optimizer::Inference {
            return Err(
                "A simulation trains the model: leave out --optimizer none. To simulate inference, use vramscope \
                        run kv-serving."
                    .to_owned(),
            );
        }
        let capacity = match &self.capacity {
            Some(text) => setting::capacity(text)?,
            None => AMPLE,
        };
        let (profile, config) = setting::allocator("2.11", &self.conf)?;
        let setup = Setup { capacity, profile, config, ..Setup::default() };
        let outcome = run_model(model, STEPS, &setup, ClockedSim::new(capacity));
        Ok(Simulation::new(model, plan, &outcome))
    }
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
        let peak = |stat: shared::allocator::StatArray| stat.all.peak.max(0) as u64;
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

/// Returns the plan as text for people.
fn text(printed: &Printed) -> String {
    let mut out = String::new();
    let Printed { plan, simulation } = printed;
    // Writing to a string can't fail.
    let _ = plan_text(&mut out, plan);
    if let Some(simulation) = simulation {
        let _ = simulation_text(&mut out, plan, simulation);
    }
    out
}

fn plan_text(out: &mut String, plan: &Plan) -> std::fmt::Result {
    writeln!(out, "P = {} weights\n", Count(plan.params))?;
    let width = plan.parts.iter().map(|part| part.formula.chars().count()).max().unwrap_or(0);
    for part in &plan.parts {
        let (name, bytes) = (part.part.name(), Bytes(part.bytes));
        writeln!(out, "  {name:<16} {bytes:>10}  = {:<width$}  [{}]", part.formula, part.source)?;
    }
    writeln!(out, "\nMemory during a step, without working memory:")?;
    for moment in &plan.moments {
        let mark = if moment.bytes == plan.peak_bytes { "  <- peak" } else { "" };
        writeln!(out, "  {:<27} {:>10}{mark}", moment.name, Bytes(moment.bytes))?;
    }
    Ok(())
}

fn simulation_text(out: &mut String, plan: &Plan, simulation: &Simulation) -> std::fmt::Result {
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
    match &simulation.error {
        Some(error) => {
            writeln!(out, "\nThe simulation stopped before the end of its {STEPS} steps: {error}")?;
            writeln!(out, "at the peak until then:      plan  simulation")?;
        }
        None => writeln!(out, "\n{STEPS} simulated steps:            plan  simulation   ratio")?,
    }
    for part in &simulation.parts {
        let planned = if part.planned_bytes > 0 { Bytes(part.planned_bytes).to_string() } else { "-".to_owned() };
        let (name, simulated) = (part.part.name(), Bytes(part.simulated_bytes));
        writeln!(out, "  {name:<24} {planned:>10} {simulated:>11} {:>7}", ratio(part.ratio))?;
    }
    let peak = Bytes(plan.peak_bytes.saturating_sub(plan.bytes(Part::KvCache)));
    let requested = Bytes(simulation.peak_requested);
    writeln!(out, "  {:<24} {peak:>10} {requested:>11} {:>7}", "peak requested", ratio(simulation.ratio))?;
    writeln!(out, "  {:<24} {:>10} {:>11}", "with rounding", "", Bytes(simulation.peak_allocated))?;
    writeln!(out, "  {:<24} {:>10} {:>11}", "reserved", "", Bytes(simulation.peak_reserved))?;
    if simulation.params != plan.params {
        writeln!(
            out,
            "The simulated model has the {} weights of its shape, not the {} of --params.",
            Count(simulation.params),
            Count(plan.params)
        )?;
    }
    Ok(())
}
