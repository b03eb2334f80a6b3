//! `vramscope budget`: the memory that a transformer needs, by formula.

mod adapters;
mod alternative;
#[cfg(test)]
mod command_tests;
mod config;
pub(super) mod count;
mod devices;
mod fit;
mod named;
mod shape;
mod text;

use std::process::ExitCode;

use budget::{Attention, Checkpointing, Implementation, Model, ModelError, Optimizer, ParallelError, Plan, Precision};
use clap::{Args, ValueEnum};
use serde::Serialize;

use self::adapters::Adapters;
use self::config::{GPT, ModelConfig, Reach, Taken};
use self::devices::Devices;
use self::fit::{Fit, Place};
use self::shape::Shape;
use super::gate::{self, GATE_STATUS};
use super::read::name_of;
use super::{one_line, refuse, show_as};

/// Number formats as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PrecisionName {
    /// 16-bit weights, with a 32-bit master copy and optimizer state
    Mixed,
    /// 32-bit weights and torch.autocast, as Hugging Face's Trainer has it with bf16=True
    Autocast,
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
    /// Adam or AdamW with fused=True, as Hugging Face's Trainer has it
    #[value(alias = "adamw-fused")]
    AdamFused,
    /// SGD with momentum
    Momentum,
    /// Plain SGD
    Sgd,
    /// Inference: no training
    #[value(alias = "inference")]
    None,
}

/// Implementations as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ImplementationName {
    /// Hugging Face's Transformers, without torch.compile
    Transformers,
    /// A kernel for each norm and activation function, as in Megatron-LM
    Fused,
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
#[command(after_help = GATE_STATUS)]
pub(super) struct BudgetCommand {
    #[command(flatten)]
    shape: Shape,
    /// Tokens per sequence; 8k is 8,192 [default: 2048, or the model's positions if it has fewer]
    #[arg(help_heading = "Training and inference", long, value_name = "N")]
    seq: Option<String>,
    /// Sequences per batch
    #[arg(help_heading = "Training and inference", long, value_name = "N", default_value = "1")]
    batch: String,
    /// Number formats
    #[arg(help_heading = "Training and inference", long, value_enum, default_value_t = PrecisionName::Mixed)]
    precision: PrecisionName,
    /// Optimizer
    #[arg(help_heading = "Training and inference", long, value_enum, default_value_t = OptimizerName::Adam)]
    optimizer: OptimizerName,
    /// Whose modules compute the model
    #[arg(help_heading = "Training and inference", long, value_enum, default_value_t = ImplementationName::Transformers)]
    implementation: ImplementationName,
    /// Attention [default: flash, unless the model can't have it]
    #[arg(help_heading = "Training and inference", long, value_enum)]
    attention: Option<AttentionName>,
    /// Activation checkpointing: none, full (keep the input of every layer), or every-K (of every K-th layer) [default: none, or
    /// full with --kbit-training]
    #[arg(help_heading = "Training and inference", long, value_name = "none|full|every-K")]
    checkpoint: Option<String>,
    /// Whether dropout masks are kept [default: as the model has it]
    #[arg(help_heading = "Training and inference", long, value_name = "yes|no", num_args = 0..=1, default_missing_value = "yes")]
    dropout: Option<String>,
    /// Tokens in the KV cache, over all sequences of --batch; a larger batch has more [default: those of the batch, with --optimizer none]
    #[arg(help_heading = "Training and inference", long, value_name = "TOKENS")]
    kv: Option<String>,
    #[command(flatten)]
    adapters: Adapters,
    #[command(flatten)]
    devices: Devices,
    #[command(flatten)]
    place: Place,
    /// Print the formulas with their sources, and the memory at each moment of a step
    #[arg(help_heading = None, long, conflicts_with = "json")]
    explain: bool,
    /// Print JSON for programs
    #[arg(help_heading = None, long)]
    json: bool,
}

/// The printed result.
#[derive(Serialize)]
struct Printed {
    /// What is planned.
    model: Model,
    /// The file that the shape came from.
    config: Option<FromFile>,
    plan: Plan,
    /// The card, if one was named.
    fit: Option<Fit>,
}

/// What came from a `config.json`.
#[derive(Serialize)]
struct FromFile {
    file: String,
    model_type: String,
    /// The values that are in use.
    taken: Vec<Taken>,
    /// The options that replaced others.
    overridden: Vec<&'static str>,
    /// How far rotary positions reach.
    reach: Option<Reach>,
}

impl FromFile {
    fn new(file: String, config: ModelConfig, given: &[&'static str], model: &Model) -> Self {
        // Without experts there are no active ones either.
        let is_dense = |taken: &Taken| taken.option == "active-experts" && model.experts.is_none();
        let (overridden, taken): (Vec<Taken>, _) =
            config.taken.into_iter().partition(|taken| given.contains(&taken.option) || is_dense(taken));
        let overridden = overridden.into_iter().map(|taken| taken.option).collect();
        Self { file, model_type: config.model_type, taken, overridden, reach: config.reach }
    }
}

impl BudgetCommand {
    /// Prints the plan.
    pub(super) fn run(self) -> ExitCode {
        match self.plan() {
            Ok(printed) => {
                let text = match self.json {
                    true => serde_json::to_string_pretty(&printed).unwrap_or_default() + "\n",
                    false => text::of(&printed, self.explain),
                };
                let code = show_as(self.json, &text);
                let is_tripped = self.place.is_tripped(printed.fit.as_ref());
                if code == ExitCode::SUCCESS { gate::code(is_tripped) } else { code }
            }
            Err(sentence) => refuse(&sentence),
        }
    }

    fn plan(&self) -> Result<Printed, String> {
        let (model, config) = self.model()?;
        let plan = Plan::new(&model);
        let fit = self.place.fit(&model, &plan)?;
        Ok(Printed { model, config, plan, fit })
    }

    fn model(&self) -> Result<(Model, Option<FromFile>), String> {
        let file = match (&self.shape.name, &self.shape.config) {
            (Some(name), _) => {
                let named = named::named(name)?;
                let config = config::of_object(&named.config, self.adapters.is_format_given())?;
                Some((named.source.to_owned(), config))
            }
            (None, Some(path)) => {
                let name = one_line(&name_of(path));
                let config = config::read(path, self.adapters.is_format_given())
                    .map_err(|sentence| format!("--config {name}: {sentence}"))?;
                Some((name, config))
            }
            (None, None) => None,
        };
        let usual = if self.adapters.is_prepared() { "full" } else { "none" };
        let checkpoint = self.checkpoint.as_deref().unwrap_or(usual);
        let checkpointing = match (checkpoint, checkpoint.strip_prefix("every-").map(str::parse)) {
            ("none", _) => Checkpointing::None,
            ("full", _) => Checkpointing::Every(1),
            (_, Some(Ok(every))) => Checkpointing::Every(every),
            (given, _) => return Err(format!("--checkpoint {given:?} is unknown. Write none, full or every-4.")),
        };
        let shape = self.shape.model(file.as_ref().map(|(_, config)| config))?;
        let learned = Some(shape.positions).filter(|positions| *positions > 0);
        let reach = file.as_ref().and_then(|(_, config)| config.reach.as_ref()).map(|reach| reach.tokens);
        let usual = learned.or(reach).map_or(GPT.seq, |positions| positions.min(GPT.seq));
        let seq = self.seq.as_ref().map_or(Ok(usual), |seq| count::context("--seq", seq))?;
        let batch = count::parse("--batch", &self.batch, "sequences")?;
        let kv_tokens = match (&self.kv, self.optimizer) {
            (Some(kv), _) => count::parse("--kv", kv, "tokens")?,
            (None, OptimizerName::None) => seq.saturating_mul(batch),
            (None, _) => 0,
        };
        let model = Model {
            seq,
            batch,
            kv_tokens,
            precision: match self.precision {
                PrecisionName::Mixed => Precision::Mixed,
                PrecisionName::Autocast => Precision::Autocast,
                PrecisionName::Fp32 => Precision::Fp32,
                PrecisionName::Bf16 => Precision::Bf16,
            },
            optimizer: match self.optimizer {
                OptimizerName::Adam => Optimizer::Adam,
                OptimizerName::AdamFused => Optimizer::FusedAdam,
                OptimizerName::Momentum => Optimizer::Momentum,
                OptimizerName::Sgd => Optimizer::Sgd,
                OptimizerName::None => Optimizer::Inference,
            },
            attention: match self.attention {
                Some(AttentionName::Flash) => Attention::Flash,
                Some(AttentionName::Plain) => Attention::Plain,
                None => shape.attention,
            },
            implementation: match self.implementation {
                ImplementationName::Transformers => Implementation::Transformers,
                ImplementationName::Fused => Implementation::Fused,
            },
            checkpointing,
            dropout: match self.dropout.as_deref() {
                Some("yes") => true,
                Some("no") => false,
                Some(_) => return Err("--dropout must be yes or no.".to_owned()),
                None => shape.dropout,
            },
            parallel: self.devices.parallel()?,
            ..shape
        };
        let model = self.adapters.of(model, file.as_ref().map(|(_, config)| config))?;
        let mut given = self.shape.given();
        given.extend(self.adapters.is_format_given().then_some("quantize"));
        given.extend(self.dropout.is_some().then_some("dropout"));
        let config = file.map(|(name, config)| FromFile::new(name, config, &given, &model));
        model.check().map_err(|error| {
            let hint = match error {
                ModelError::Heads(..) => " Change one of them, or give --head-dim.",
                ModelError::KvHeads(..) => " Change one of them.",
                ModelError::Quantized => " Give --lora-rank 8, --optimizer none or --quantize none.",
                ModelError::Prepared => " Give --quantize nf4 and --lora-rank 8.",
                ModelError::NoExperts(_) => " Give --quantize nf4 or --quantize none.",
                ModelError::Untrainable(_) => " Give --optimizer none, or --quantize none for weights in 16 bits.",
                ModelError::Parallel(ParallelError::ZeroAlone(_)) => " Give --data 8.",
                ModelError::Parallel(ParallelError::SequenceAlone) => " Give --tensor 2.",
                ModelError::Parallel(_) => " Divide it otherwise.",
                _ => "",
            };
            let source =
                config.as_ref().map_or_else(String::new, |config| format!(" ({} and the options)", config.file));
            format!("This can't be planned{source}: {error}.{hint}")
        })?;
        Ok((model, config))
    }
}

/// Returns the names of the models whose shape is known.
pub(super) fn named_models() -> Vec<&'static str> {
    named::all().into_iter().map(|model| model.name).collect()
}
