//! A training loop that keeps a tensor of every step.

use budget::{Model, Part};

use super::MIB;
use crate::workloads::job::{Device, Job, JobError, at};
use crate::workloads::params::{Choices, Param, Values};
use crate::workloads::sites;
use crate::workloads::transformer::Net;

pub(in crate::workloads) const PARAMS: &[Param] =
    &[Param { name: "kept", default: "48", values: Values::Count(1, 4_096), help: "MiB that each step keeps" }];

pub(in crate::workloads) fn run<D: Device>(job: &mut Job<D>, choices: &Choices, steps: u64) -> Result<(), JobError> {
    let model = Model::gpt(12, 1_024, 16, 32_000, 512, 8);
    let kept = choices.count("kept") * MIB;
    job.call(at("main", "train.py", 140), |job| {
        let mut net = Net::load(job, &model)?;
        for step in 0..steps {
            job.span(&format!("step {step}"), |job| net.train_step(job))?;
            // `history.append(outputs)`: a tensor on the device, where `outputs.cpu()` was meant.
            job.call(at("log_outputs", "metrics.py", 33), |job| {
                job.part(Part::Working, |job| {
                    let _never_freed = job.alloc(kept, sites::CLONE_OP)?;
                    Ok::<_, JobError>(())
                })
            })?;
            net.update(job)?;
        }
        Ok(())
    })
}
