//! Training on sequences of varied lengths.

use budget::Model;

use crate::workloads::job::{Device, Job, JobError, Tensor, at};
use crate::workloads::params::{Choices, Param, Values};
use crate::workloads::sites;
use crate::workloads::transformer::Net;

pub(in crate::workloads) const PARAMS: &[Param] = &[
    Param {
        name: "longest",
        default: "2048",
        values: Values::Count(64, 65_536),
        help: "tokens in the longest sequence",
    },
    Param { name: "batch", default: "8", values: Values::Count(1, 1_024), help: "sequences in a batch" },
    Param {
        name: "lengths",
        default: "varied",
        values: Values::Words(&["varied", "padded"]),
        help: "varied, or padded to the longest",
    },
];

/// Number of past evaluations whose scores are kept, each as long as its batch was.
const KEPT: usize = 24;

pub(in crate::workloads) fn run<D: Device>(job: &mut Job<D>, choices: &Choices, steps: u64) -> Result<(), JobError> {
    let longest = choices.count("longest");
    let mut model: Model = Model::gpt(12, 1_536, 12, 32_000, longest, choices.count("batch"));
    let is_varied = choices.word("lengths") == "varied";
    job.call(at("main", "train.py", 140), |job| {
        let mut net = Net::load(job, &model)?;
        let mut kept: Vec<Tensor> = Vec::new();
        for step in 0..steps {
            // Lengths are multiples of eight, as tokenizers pad; the longest occur from time to time.
            model.seq = if is_varied {
                (longest / 4 + job.random_below(longest - longest / 4 + 1)).next_multiple_of(8)
            } else {
                longest
            };
            model.seq = model.seq.min(longest);
            net.model = model;
            job.span(&format!("step {step}"), |job| net.train_step(job))?;
            net.update(job)?;
            let scores = job.call(at("remember", "train.py", 127), |job| {
                job.alloc(model.batch * model.seq * 512, sites::CLONE_OP)
            })?;
            kept.push(scores);
            if kept.len() > KEPT {
                // Not the oldest, but whichever the buffer replaces.
                let at = job.random_below(KEPT as u64) as usize;
                let replaced = kept.swap_remove(at);
                job.free(replaced);
            }
        }
        Ok(())
    })
}
