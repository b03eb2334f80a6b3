//! Training without `empty_cache`, then with it in the loop.

use budget::Model;
use trace::units::{Bytes, Count, counted};

use crate::workloads::job::{Device, Job, JobError, at};
use crate::workloads::params::{Choices, Param, Values};
use crate::workloads::transformer::Net;

pub(in crate::workloads) const PARAMS: &[Param] = &[
    Param { name: "batch", default: "8", values: Values::Count(1, 1_024), help: "sequences in a batch" },
    Param {
        name: "every",
        default: "1",
        values: Values::Count(1, 1_000),
        help: "in the second half, empty the cache after every n-th step",
    },
];

/// Calls of the driver in one half of the steps, without those of its first two steps, which set up the cache.
#[derive(Clone, Copy, Default)]
struct Half {
    steps: u64,
    calls: [u64; 2],
    peak: u64,
}

pub(in crate::workloads) fn run<D: Device>(
    job: &mut Job<D>,
    choices: &Choices,
    steps: u64,
    notes: &mut Vec<String>,
) -> Result<(), JobError> {
    let model = Model::gpt(12, 1_024, 16, 32_000, 1_024, choices.count("batch"));
    job.call(at("main", "train.py", 140), |job| {
        let mut net = Net::load(job, &model)?;
        let mut halves = [Half::default(); 2];
        for step in 0..steps {
            let (half, is_emptied) = (step / steps.div_ceil(2), step >= steps.div_ceil(2));
            let before = job.driver_calls();
            job.peak_since();
            job.span(&format!("step {step}"), |job| net.train_step(job))?;
            net.update(job)?;
            if is_emptied && (step + 1).is_multiple_of(choices.count("every").max(1)) {
                job.span("empty cache", |job| job.call(at("train", "train.py", 127), Job::empty_cache))?;
            }
            let after = job.driver_calls();
            if let Some(half) = halves.get_mut(half as usize).filter(|_| step >= 2) {
                half.steps += 1;
                half.peak = half.peak.max(job.peak_since());
                for ((sum, after), before) in half.calls.iter_mut().zip(after).zip(before) {
                    *sum += after - before;
                }
            }
        }
        let [without, with] = halves;
        if without.steps > 0 && with.steps > 0 {
            let calls = |half: Half| half.calls.iter().sum::<u64>().div_ceil(half.steps);
            notes.push(format!(
                "From the third step on, a step made {} on average without empty_cache, and {} with it. \
                 The tensors need {} at the peak without it and {} with it: what is emptied is taken from the device again.",
                counted(calls(without), "driver call"),
                Count(calls(with)),
                Bytes(without.peak),
                Bytes(with.peak),
            ));
        }
        Ok(())
    })
}
