//! The stories that can be run, and how a run is set up.

use shared::allocator::{AllocatorConfig, DeviceAllocator, Profile, TORCH_2_11};
use shared::budget::ModelError;

use super::job::{ClockedSim, Device, Job, Stop};
use super::params::{Choices, Param};
use super::{sample, stories};

const GIB: u64 = 1 << 30;

/// How a run is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Bytes of a simulated device, or what may be taken of a real one.
    pub capacity: u64,
    /// Where chance begins.
    pub seed: u64,
    /// The release that the allocator decides as.
    pub profile: &'static Profile,
    /// The allocator's settings.
    pub config: AllocatorConfig,
}

impl Default for Setup {
    fn default() -> Self {
        Self { capacity: 24 * GIB, seed: 1, profile: &TORCH_2_11, config: AllocatorConfig::default() }
    }
}

impl Setup {
    /// A program on a simulated device.
    pub(super) fn simulated(&self) -> Job<ClockedSim> {
        self.on(ClockedSim::new(self.capacity))
    }

    /// A program on a device.
    pub(super) fn on<D: Device>(&self, device: D) -> Job<D> {
        let total = device.total_memory();
        let make = |tape| {
            let mut allocator = DeviceAllocator::new(device, tape, self.profile, self.config.clone());
            // A device that is larger than what was asked for is used only so far.
            if self.capacity < total {
                let share = self.capacity as f64 / total.max(1) as f64;
                // A share of less than one is a fraction.
                let _ = allocator.set_memory_fraction(share);
            }
            allocator
        };
        Job::new(make, self.seed)
    }
}

/// Something that happens to programs on a GPU, as one.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    /// What it is run as.
    pub name: &'static str,
    /// What it tells, in a line.
    pub line: &'static str,
    /// Bytes of the device that it is told on.
    pub capacity: u64,
    /// How many steps it has.
    pub steps: u64,
    /// What can be chosen.
    pub params: &'static [Param],
    kind: Kind,
}

/// Which program it is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Transformer,
    ResnetSweep,
    VariableLength,
    KvServing,
    Alternating,
    Leak,
    CheckpointSave,
    ModelSwitch,
    Recovery,
    Sample,
}

impl Story {
    /// All stories.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "transformer",
            line: "a GPT's training steps: weights, gradients, Adam, activations; with or without checkpointing",
            capacity: 40 * GIB,
            steps: 4,
            params: stories::transformer::PARAMS,
            kind: Kind::Transformer,
        },
        Self {
            name: "resnet-sweep",
            line: "ResNet-50 with larger and larger batches, until one no longer fits",
            capacity: 24 * GIB,
            steps: 12,
            params: stories::resnet_sweep::PARAMS,
            kind: Kind::ResnetSweep,
        },
        Self {
            name: "variable-length",
            line: "sequences of all lengths leave pieces behind, until a request fails though enough is free",
            capacity: 21 * GIB,
            steps: 200,
            params: stories::variable_length::PARAMS,
            kind: Kind::VariableLength,
        },
        Self {
            name: "kv-serving",
            line: "several models serve requests from one device, their KV caches growing token by token",
            capacity: 48 * GIB,
            steps: 400,
            params: stories::kv_serving::PARAMS,
            kind: Kind::KvServing,
        },
        Self {
            name: "alternating",
            line: "every other block is freed: half the memory is free, and no large request fits",
            capacity: 8 * GIB,
            steps: 1,
            params: stories::alternating::PARAMS,
            kind: Kind::Alternating,
        },
        Self {
            name: "leak",
            line: "a list keeps a tensor of every step, until the device is full of them",
            capacity: 16 * GIB,
            steps: 400,
            params: stories::leak::PARAMS,
            kind: Kind::Leak,
        },
        Self {
            name: "checkpoint-save",
            line: "saving a checkpoint copies weights and optimizer state on the device: twice as much for a moment",
            capacity: 32 * GIB,
            steps: 6,
            params: stories::checkpoint_save::PARAMS,
            kind: Kind::CheckpointSave,
        },
        Self {
            name: "model-switch",
            line: "models take turns on one device: what one leaves cached doesn't fit the next",
            capacity: 20 * GIB,
            steps: 6,
            params: stories::model_switch::PARAMS,
            kind: Kind::ModelSwitch,
        },
        Self {
            name: "recovery",
            line: "a batch that doesn't fit is caught, the cache emptied, and training goes on with a smaller one",
            capacity: 24 * GIB,
            steps: 12,
            params: stories::recovery::PARAMS,
            kind: Kind::Recovery,
        },
        Self {
            name: "sample",
            line: "the page's sample: a GPT whose evaluations keep their scores, until a request fails by fragmentation",
            capacity: sample::CAPACITY,
            steps: sample::STEPS,
            params: &[],
            kind: Kind::Sample,
        },
    ];

    /// The story of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|story| story.name == name)
    }

    /// Checks that what was chosen goes together.
    pub fn check(&self, choices: &Choices) -> Result<(), ModelError> {
        match self.kind {
            Kind::Transformer => stories::transformer::model(choices).check(),
            _ => Ok(()),
        }
    }

    /// Tells the story. What it has to say beside the trace goes to `notes`.
    pub(super) fn tell<D: Device>(
        &self,
        job: &mut Job<D>,
        choices: &Choices,
        steps: u64,
        notes: &mut Vec<String>,
    ) -> Result<(), Stop> {
        match self.kind {
            Kind::Transformer => stories::transformer::tell(job, choices, steps),
            Kind::ResnetSweep => stories::resnet_sweep::tell(job, choices, steps, notes),
            Kind::VariableLength => stories::variable_length::tell(job, choices, steps),
            Kind::KvServing => stories::kv_serving::tell(job, choices, steps, notes),
            Kind::Alternating => stories::alternating::tell(job, choices, notes),
            Kind::Leak => stories::leak::tell(job, choices, steps),
            Kind::CheckpointSave => stories::checkpoint_save::tell(job, choices, steps),
            Kind::ModelSwitch => stories::model_switch::tell(job, choices, steps),
            Kind::Recovery => stories::recovery::tell(job, choices, steps, notes),
            Kind::Sample => sample::train(job, steps),
        }
    }
}
