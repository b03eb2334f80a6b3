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
    program: WorkloadProgram,
}

/// The program of a workload.
#[derive(Clone, Copy, Debug)]
enum WorkloadProgram {
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
            program: WorkloadProgram::Transformer,
        },
        Self {
            name: "resnet-sweep",
            line: "ResNet-50 with growing batches, until one no longer fits",
            capacity: 24 * GIB,
            steps: 12,
            params: programs::resnet_sweep::PARAMS,
            program: WorkloadProgram::ResnetSweep,
        },
        Self {
            name: "variable-length",
            line: "sequences of varied lengths fragment the memory, until a request fails although enough is free",
            capacity: 21 * GIB,
            steps: 200,
            params: programs::variable_length::PARAMS,
            program: WorkloadProgram::VariableLength,
        },
        Self {
            name: "kv-serving",
            line: "several models serve requests from one device, their KV caches growing token by token",
            capacity: 48 * GIB,
            steps: 400,
            params: programs::kv_serving::PARAMS,
            program: WorkloadProgram::KvServing,
        },
        Self {
            name: "alternating",
            line: "every other block is freed: half the memory is free, but no large request fits",
            capacity: 8 * GIB,
            steps: 1,
            params: programs::alternating::PARAMS,
            program: WorkloadProgram::Alternating,
        },
        Self {
            name: "leak",
            line: "a list keeps a tensor of every step, until the device is full of them",
            capacity: 16 * GIB,
            steps: 400,
            params: programs::leak::PARAMS,
            program: WorkloadProgram::Leak,
        },
        Self {
            name: "checkpoint-save",
            line: "saving a checkpoint copies weights and optimizer state on the device, which briefly doubles them, or to pinned \
                   host memory, which doesn't",
            capacity: 32 * GIB,
            steps: 6,
            params: programs::checkpoint_save::PARAMS,
            program: WorkloadProgram::CheckpointSave,
        },
        Self {
            name: "checkpointing",
            line: "a GPT's steps with activation checkpointing off, then on: less memory for work that is done twice",
            capacity: 40 * GIB,
            steps: 6,
            params: programs::checkpointing::PARAMS,
            program: WorkloadProgram::Checkpointing,
        },
        Self {
            name: "empty-cache",
            line: "steps without empty_cache, then with it in the loop: the same peak, for many calls of the driver",
            capacity: 24 * GIB,
            steps: 12,
            params: programs::empty_cache::PARAMS,
            program: WorkloadProgram::EmptyCache,
        },
        Self {
            name: "model-switch",
            line: "models take turns on one device: what one leaves cached doesn't fit the next",
            capacity: 20 * GIB,
            steps: 6,
            params: programs::model_switch::PARAMS,
            program: WorkloadProgram::ModelSwitch,
        },
        Self {
            name: "recovery",
            line: "a batch that doesn't fit is caught, the cache emptied, and training continues with a smaller one",
            capacity: 24 * GIB,
            steps: 12,
            params: programs::recovery::PARAMS,
            program: WorkloadProgram::Recovery,
        },
        Self {
            name: "sample",
            line: "the page's sample: a GPT whose evaluations keep their scores, until a request fails because of fragmentation",
            capacity: sample::CAPACITY,
            steps: sample::STEPS,
            params: &[],
            program: WorkloadProgram::Sample,
        },
    ];

    /// Returns the workload of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|workload| workload.name == name)
    }

    /// Checks that the choices fit together.
    pub fn check(&self, choices: &Choices) -> Result<(), ModelError> {
        match self.program {
            WorkloadProgram::Transformer => programs::transformer::model(choices).check(),
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
        match self.program {
            WorkloadProgram::Transformer => programs::transformer::run(job, choices, steps),
            WorkloadProgram::ResnetSweep => programs::resnet_sweep::run(job, choices, steps, notes),
            WorkloadProgram::VariableLength => programs::variable_length::run(job, choices, steps),
            WorkloadProgram::KvServing => programs::kv_serving::run(job, choices, steps, notes),
            WorkloadProgram::Alternating => programs::alternating::run(job, choices, notes),
            WorkloadProgram::Leak => programs::leak::run(job, choices, steps),
            WorkloadProgram::CheckpointSave => programs::checkpoint_save::run(job, choices, steps, notes),
            WorkloadProgram::Checkpointing => programs::checkpointing::run(job, choices, steps, notes),
            WorkloadProgram::EmptyCache => programs::empty_cache::run(job, choices, steps, notes),
            WorkloadProgram::ModelSwitch => programs::model_switch::run(job, choices, steps),
            WorkloadProgram::Recovery => programs::recovery::run(job, choices, steps, notes),
            WorkloadProgram::Sample => sample::train(job, steps),
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
