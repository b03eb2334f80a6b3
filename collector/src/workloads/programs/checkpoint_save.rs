//! Training that saves checkpoints.

use shared::budget::Model;

use crate::workloads::job::{Device, Job, JobError, at};
use crate::workloads::params::{Choices, Param, Values};
use crate::workloads::sites;
use crate::workloads::transformer::Net;

pub(in crate::workloads) const PARAMS: &[Param] = &[
    Param {
        name: "copy",
        default: "whole",
        values: Values::Words(&["whole", "tensor"]),
        help: "clone the whole state at once, or tensor by tensor",
    },
    Param { name: "every", default: "2", values: Values::Count(1, 1_000), help: "steps between checkpoints" },
];

pub(in crate::workloads) fn run<D: Device>(job: &mut Job<D>, choices: &Choices, steps: u64) -> Result<(), JobError> {
    let model = Model::gpt(24, 1_792, 14, 50_304, 1_024, 4);
    job.call(at("main", "train.py", 140), |job| {
        let mut net = Net::load(job, &model)?;
        for step in 0..steps {
            job.span(&format!("step {step}"), |job| net.train_step(job))?;
            net.update(job)?;
            if (step + 1).is_multiple_of(choices.count("every").max(1)) {
                let at_once = choices.word("copy") == "whole";
                job.span("save", |job| job.call(at("save", "checkpoint.py", 44), |job| save(job, &net, at_once)))?;
            }
        }
        Ok(())
    })
}

/// Saves `{name: tensor.clone() for name, tensor in state.items()}` and copies it to the host.
fn save<D: Device>(job: &mut Job<D>, net: &Net, at_once: bool) -> Result<(), JobError> {
    let sizes: Vec<u64> = net.state().collect();
    let mut copies = Vec::new();
    for bytes in sizes {
        let copy = job.call(at("<dictcomp>", "checkpoint.py", 47), |job| job.alloc(bytes, sites::CLONE_OP))?;
        // To the host at 20 GB a second.
        let copying = (bytes / 20_000) as i64;
        if at_once {
            copies.push(copy);
        } else {
            job.wait(copying);
            job.free(copy);
        }
    }
    job.wait(180_000);
    job.free_all(copies);
    Ok(())
}
