//! Training that catches an out-of-memory error and continues.

use budget::Model;

use crate::workloads::job::{Device, Job, JobError, at};
use crate::workloads::params::{Choices, Param, Values, YES_NO};
use crate::workloads::transformer::Net;

pub(in crate::workloads) const PARAMS: &[Param] = &[
    Param { name: "batch", default: "32", values: Values::Count(1, 1_024), help: "sequences in the first batch" },
    Param { name: "empty-cache", default: "yes", values: YES_NO, help: "whether to empty the cache before continuing" },
];

pub(in crate::workloads) fn run<D: Device>(
    job: &mut Job<D>,
    choices: &Choices,
    steps: u64,
    notes: &mut Vec<String>,
) -> Result<(), JobError> {
    let mut model = Model::gpt(16, 1_536, 16, 32_000, 1_024, choices.count("batch"));
    job.call(at("main", "train.py", 140), |job| {
        let mut net = Net::load(job, &model)?;
        let mut step = 0;
        while step < steps {
            net.model = model;
            let tried = job.attempt(|job| job.span(&format!("step {step}"), |job| net.train_step(job)));
            match tried {
                Ok(()) => {
                    net.update(job)?;
                    step += 1;
                }
                Err(JobError::OutOfMemory(failed)) if model.batch > 1 => {
                    net.forget_gradients();
                    notes.push(format!(
                        "Step {step} with a batch of {}: {failed} The error was caught; training continued with a batch of {}.",
                        model.batch,
                        model.batch / 2
                    ));
                    if choices.is("empty-cache") {
                        job.span("empty cache", |job| job.call(at("recover", "train.py", 131), Job::empty_cache))?;
                    }
                    model.batch /= 2;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })
}
