//! Training with activation checkpointing off, then on.

use budget::{Checkpointing, Model};
use trace::units::{Bytes, Count, counted};

use crate::workloads::job::{Device, Job, JobError, at};
use crate::workloads::params::{Choices, Param, Values};
use crate::workloads::transformer::Net;

pub(in crate::workloads) const PARAMS: &[Param] = &[
    Param { name: "layers", default: "24", values: Values::Count(1, 200), help: "number of layers" },
    Param { name: "batch", default: "4", values: Values::Count(1, 1_024), help: "sequences in a batch" },
    Param {
        name: "every",
        default: "1",
        values: Values::Count(1, 200),
        help: "once it is on, keep only the input of every n-th layer",
    },
];

/// What a step used.
#[derive(Clone, Copy)]
struct Used {
    peak: u64,
    tensors: u64,
}

pub(in crate::workloads) fn run<D: Device>(
    job: &mut Job<D>,
    choices: &Choices,
    steps: u64,
    notes: &mut Vec<String>,
) -> Result<(), JobError> {
    let [layers, batch, every] = ["layers", "batch", "every"].map(|name| choices.count(name));
    let off = Model::gpt(layers, 2_048, 16, 50_304, 2_048, batch);
    let on = Model { checkpointing: Checkpointing::Every(every.clamp(1, layers.max(1))), ..off };
    job.call(at("main", "train.py", 140), |job| {
        let mut net = Net::load(job, &off)?;
        let mut used: [Option<Used>; 2] = [None, None];
        for step in 0..steps {
            let is_on = step >= steps.div_ceil(2);
            net.model = if is_on { on } else { off };
            let name = if is_on { "checkpointed step" } else { "step" };
            // From here on, so that a step's peak is that of its activations and not of the optimizer.
            job.peak_since();
            let before = job.allocations();
            job.span(&format!("{name} {step}"), |job| net.train_step(job))?;
            let step = Used { peak: job.peak_since(), tensors: job.allocations() - before };
            net.update(job)?;
            let slot = &mut used[usize::from(is_on)];
            // The optimizer's state exists from the second step on.
            *slot = Some(slot.map_or(step, |last| Used { peak: last.peak.max(step.peak), ..step }));
        }
        if let [Some(off), Some(on)] = used {
            let kept = match every {
                1 => "the input of each layer".to_owned(),
                _ => format!("the input of every {} layers", Count(every)),
            };
            notes.push(format!(
                "During forward and backward pass the program holds up to {}, or {} if it keeps only {kept}. It then makes {} \
                 a step instead of {}, since each segment runs forward twice.",
                Bytes(off.peak),
                Bytes(on.peak),
                counted(on.tensors, "tensor"),
                Count(off.tensors),
            ));
        }
        Ok(())
    })
}
