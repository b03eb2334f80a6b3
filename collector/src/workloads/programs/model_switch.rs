//! Models that take turns on one device.

use budget::{Model, Optimizer, Precision};

use crate::workloads::job::{Device, Job, JobError, at};
use crate::workloads::params::{Choices, Param, YES_NO};
use crate::workloads::sites;
use crate::workloads::transformer::Net;

pub(in crate::workloads) const PARAMS: &[Param] = &[Param {
    name: "empty-cache",
    default: "no",
    values: YES_NO,
    help: "whether to empty the cache between two models",
}];

/// Three models that each fit alone, with matrices of different sizes.
const MODELS: [Model; 3] = [
    Model::gpt(32, 4_096, 32, 32_000, 2_048, 1),
    Model::gpt(28, 3_584, 28, 151_936, 2_048, 1),
    Model::gpt(36, 4_608, 36, 100_352, 2_048, 1),
];

pub(in crate::workloads) fn run<D: Device>(job: &mut Job<D>, choices: &Choices, steps: u64) -> Result<(), JobError> {
    job.call(at("main", "serve.py", 88), |job| {
        for (turn, model) in (0..steps).zip(MODELS.iter().cycle()) {
            let model = Model { precision: Precision::Bf16, optimizer: Optimizer::Inference, ..*model };
            job.span(&format!("model {}", turn % MODELS.len() as u64), |job| {
                let net = Net::load(job, &model)?;
                for _ in 0..8 {
                    answer(job, &model)?;
                }
                job.call(at("unload", "serve.py", 61), |job| net.unload(job));
                if choices.is("empty-cache") {
                    job.call(at("unload", "serve.py", 62), Job::empty_cache)?;
                }
                Ok::<_, JobError>(())
            })?;
        }
        Ok(())
    })
}

/// The forward pass of one request, without gradients.
fn answer<D: Device>(job: &mut Job<D>, model: &Model) -> Result<(), JobError> {
    let tokens = 64 + job.random_below(model.seq);
    let stream = tokens * model.hidden * model.precision.element();
    job.call(at("answer", "serve.py", 35), |job| {
        for _ in 0..model.layers {
            let hidden = job.call(at("forward", "model.py", 130), |job| job.alloc(stream, sites::LINEAR_OP))?;
            job.call(at("forward", "mlp.py", 41), |job| job.touch(4 * stream, sites::LINEAR_OP))?;
            job.free(hidden);
        }
        job.touch(tokens * model.vocab * model.precision.element(), sites::LINEAR_OP)
    })
}
