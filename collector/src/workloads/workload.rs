//! The list of workloads.

use budget::ModelError;

use super::job::{Device, Job, JobError};
use super::params::{Choices, Param};
use super::{programs, sample};

const GIB: u64 = 1 << 30;

/// A program with a typical use of GPU memory.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub line: &'static str,
    /// Default capacity of the device in bytes.
    pub capacity: u64,
    /// Default number of steps.
    pub steps: u64,
    /// The parameters.
    pub params: &'static [Param],
    kind: Kind,
}

/// The program of a workload.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Transformer,
    ResnetSweep,
    VariableLength,
    KvServing,
    Alternating,
    Leak,
    CheckpointSave,
    Checkpointing,
    EmptyCache,
    ModelSwitch,
    Recovery,
    Sample,
}

impl Workload {
    /// All workloads.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "transformer",
            line: "a GPT's training steps: weights, gradients, Adam, activations, with or without checkpointing",
            capacity: 40 * GIB,
            steps: 4,
            params: programs::transformer::PARAMS,
            kind: Kind::Transformer,
        },
        Self {
            name: "resnet-sweep",
            line: "ResNet-50 with growing batches, until one no longer fits",
            capacity: 24 * GIB,
            steps: 12,
            params: programs::resnet_sweep::PARAMS,
            kind: Kind::ResnetSweep,
        },
        Self {
            name: "variable-length",
            line: "sequences of varied lengths fragment the memory, until a request fails although enough is free",
            capacity: 21 * GIB,
            steps: 200,
            params: programs::variable_length::PARAMS,
            kind: Kind::VariableLength,
        },
        Self {
            name: "kv-serving",
            line: "several models serve requests from one device, their KV caches growing token by token",
            capacity: 48 * GIB,
            steps: 400,
            params: programs::kv_serving::PARAMS,
            kind: Kind::KvServing,
        },
        Self {
            name: "alternating",
            line: "every other block is freed: half the memory is free, but no large request fits",
            capacity: 8 * GIB,
            steps: 1,
            params: programs::alternating::PARAMS,
            kind: Kind::Alternating,
        },
        Self {
            name: "leak",
            line: "a list keeps a tensor of every step, until the device is full of them",
            capacity: 16 * GIB,
            steps: 400,
            params: programs::leak::PARAMS,
            kind: Kind::Leak,
        },
        Self {
            name: "checkpoint-save",
            line: "saving a checkpoint copies weights and optimizer state on the device, which briefly doubles them, or to pinned \
                   host memory, which doesn't",
            capacity: 32 * GIB,
            steps: 6,
            params: programs::checkpoint_save::PARAMS,
            kind: Kind::CheckpointSave,
        },
        Self {
            name: "checkpointing",
            line: "a GPT's steps with activation checkpointing off, then on: less memory for work that is done twice",
            capacity: 40 * GIB,
            steps: 6,
            params: programs::checkpointing::PARAMS,
            kind: Kind::Checkpointing,
        },
        Self {
            name: "empty-cache",
            line: "steps without empty_cache, then with it in the loop: the same peak, for many calls of the driver",
            capacity: 24 * GIB,
            steps: 12,
            params: programs::empty_cache::PARAMS,
            kind: Kind::EmptyCache,
        },
        Self {
            name: "model-switch",
            line: "models take turns on one device: what one leaves cached doesn't fit the next",
            capacity: 20 * GIB,
            steps: 6,
            params: programs::model_switch::PARAMS,
            kind: Kind::ModelSwitch,
        },
        Self {
            name: "recovery",
            line: "a batch that doesn't fit is caught, the cache emptied, and training continues with a smaller one",
            capacity: 24 * GIB,
            steps: 12,
            params: programs::recovery::PARAMS,
            kind: Kind::Recovery,
        },
        Self {
            name: "sample",
            line: "the page's sample: a GPT whose evaluations keep their scores, until a request fails because of fragmentation",
            capacity: sample::CAPACITY,
            steps: sample::STEPS,
            params: &[],
            kind: Kind::Sample,
        },
    ];

    /// Returns the workload of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|workload| workload.name == name)
    }

    /// Checks that the choices fit together.
    pub fn check(&self, choices: &Choices) -> Result<(), ModelError> {
        match self.kind {
            Kind::Transformer => programs::transformer::model(choices).check(),
            _ => Ok(()),
        }
    }

    /// Runs the program. Facts that the trace does not show are added to `notes`.
    pub(super) fn run<D: Device>(
        &self,
        job: &mut Job<D>,
        choices: &Choices,
        steps: u64,
        notes: &mut Vec<String>,
    ) -> Result<(), JobError> {
        match self.kind {
            Kind::Transformer => programs::transformer::run(job, choices, steps),
            Kind::ResnetSweep => programs::resnet_sweep::run(job, choices, steps, notes),
            Kind::VariableLength => programs::variable_length::run(job, choices, steps),
            Kind::KvServing => programs::kv_serving::run(job, choices, steps, notes),
            Kind::Alternating => programs::alternating::run(job, choices, notes),
            Kind::Leak => programs::leak::run(job, choices, steps),
            Kind::CheckpointSave => programs::checkpoint_save::run(job, choices, steps, notes),
            Kind::Checkpointing => programs::checkpointing::run(job, choices, steps, notes),
            Kind::EmptyCache => programs::empty_cache::run(job, choices, steps, notes),
            Kind::ModelSwitch => programs::model_switch::run(job, choices, steps),
            Kind::Recovery => programs::recovery::run(job, choices, steps, notes),
            Kind::Sample => sample::train(job, steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_can_be_chosen() {
        for workload in Workload::ALL {
            for param in workload.params {
                assert!(param.values.contains(param.default), "{} {}", workload.name, param.name);
            }
        }
    }
}
