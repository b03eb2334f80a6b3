//! A GPT's training steps.

use budget::{Attention, Checkpointing, Model, Optimizer, Precision};

use crate::workloads::job::{Device, Job, JobError, Tensor, at};
use crate::workloads::params::{Choices, Param, Values, YES_NO};
use crate::workloads::sites;
use crate::workloads::transformer::Net;

pub(in crate::workloads) const PARAMS: &[Param] = &[
    Param { name: "layers", default: "24", values: Values::Count(1, 200), help: "number of layers" },
    Param {
        name: "hidden",
        default: "2048",
        values: Values::Count(64, 32_768),
        help: "hidden size, a multiple of heads",
    },
    Param { name: "heads", default: "16", values: Values::Count(1, 256), help: "attention heads" },
    Param { name: "seq", default: "2048", values: Values::Count(1, 1_048_576), help: "tokens in a sequence" },
    Param { name: "batch", default: "4", values: Values::Count(1, 4_096), help: "sequences in a batch" },
    Param { name: "vocab", default: "50304", values: Values::Count(2, 1_000_000), help: "size of the vocabulary" },
    Param {
        name: "precision",
        default: "mixed",
        values: Values::Words(&["mixed", "fp32", "bf16"]),
        help: "number format",
    },
    Param {
        name: "optimizer",
        default: "adam",
        values: Values::Words(&["adam", "momentum", "sgd"]),
        help: "optimizer",
    },
    Param {
        name: "checkpoint",
        default: "none",
        values: Values::WordsOrCount(&["none", "full"], 1, 200),
        help: "keep only the input of every n-th layer",
    },
    Param {
        name: "attention",
        default: "flash",
        values: Values::Words(&["flash", "plain"]),
        help: "tiled, or with the whole matrix of scores",
    },
    Param { name: "dropout", default: "no", values: YES_NO, help: "whether dropout masks are kept" },
];

/// Returns the chosen model.
pub(in crate::workloads) fn model(choices: &Choices) -> Model {
    let [layers, hidden, heads, vocab, seq, batch] =
        ["layers", "hidden", "heads", "vocab", "seq", "batch"].map(|name| choices.count(name));
    Model {
        precision: match choices.word("precision") {
            "fp32" => Precision::Fp32,
            "bf16" => Precision::Bf16,
            _ => Precision::Mixed,
        },
        optimizer: match choices.word("optimizer") {
            "momentum" => Optimizer::Momentum,
            "sgd" => Optimizer::Sgd,
            _ => Optimizer::Adam,
        },
        checkpointing: match (choices.word("checkpoint"), choices.count("checkpoint")) {
            ("none", _) => Checkpointing::None,
            (_, every) => Checkpointing::Every(every.clamp(1, layers.max(1))),
        },
        attention: if choices.word("attention") == "plain" { Attention::Plain } else { Attention::Flash },
        dropout: choices.is("dropout"),
        ..Model::gpt(layers, hidden, heads, vocab, seq, batch)
    }
}

pub(in crate::workloads) fn run<D: Device>(job: &mut Job<D>, choices: &Choices, steps: u64) -> Result<(), JobError> {
    train(job, &model(choices), steps)
}

/// Trains a model for some steps. Each batch is copied during the step before.
pub(in crate::workloads) fn train<D: Device>(job: &mut Job<D>, model: &Model, steps: u64) -> Result<(), JobError> {
    job.call(at("main", "train.py", 140), |job| {
        let copying = job.new_stream()?;
        let mut net = Net::load(job, model)?;
        let mut batch = next_batch(job, copying, model)?;
        for step in 0..steps {
            let next = next_batch(job, copying, model)?;
            job.span(&format!("step {step}"), |job| net.train_step(job))?;
            for tensor in batch {
                job.record_stream(tensor, job.main_stream())?;
                job.free(tensor);
            }
            net.update(job)?;
            batch = next;
        }
        Ok(())
    })
}

/// Copies tokens and targets on a separate stream.
pub(super) fn next_batch<D: Device>(
    job: &mut Job<D>,
    copying: trace::units::Stream,
    model: &Model,
) -> Result<[Tensor; 2], JobError> {
    job.call(at("__next__", "data.py", 77), |job| {
        let bytes = model.batch * model.seq * 8;
        Ok([job.alloc_on(copying, bytes, sites::COPY_OP)?, job.alloc_on(copying, bytes, sites::COPY_OP)?])
    })
}
