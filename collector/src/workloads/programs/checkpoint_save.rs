//! Training that saves checkpoints.

use budget::Model;
use trace::units::{Bytes, counted};

use crate::workloads::job::{Device, Job, JobError, at};
use crate::workloads::params::{Choices, Param, Values};
use crate::workloads::sites;
use crate::workloads::transformer::Net;

pub(in crate::workloads) const PARAMS: &[Param] = &[
    Param {
        name: "copy",
        default: "whole",
        values: Values::Words(&["whole", "tensor", "pinned"]),
        help: "clone the whole state at once, clone it tensor by tensor, or copy it to pinned host memory while training continues",
    },
    Param { name: "every", default: "2", values: Values::Count(1, 1_000), help: "steps between checkpoints" },
];

/// Bytes that are copied to pageable host memory in a microsecond, and to pinned memory: 20 and 25 GB a second, of the 32
/// that PCIe 4 has.
const PAGEABLE_RATE: u64 = 20_000;
const PINNED_RATE: u64 = 25_000;
/// The time to start one copy, in microseconds.
const START_US: i64 = 6;

/// Copies to pinned memory.
#[derive(Default)]
struct Pinned {
    /// When the last copy is done, on the program's clock.
    done_us: i64,
    /// Bytes of the state.
    state: u64,
    /// Bytes of the buffers, which are kept for the next checkpoint.
    buffers: u64,
    saved: u64,
    /// How long the optimizer waited for the copies.
    waited_us: i64,
}

pub(in crate::workloads) fn run<D: Device>(
    job: &mut Job<D>,
    choices: &Choices,
    steps: u64,
    notes: &mut Vec<String>,
) -> Result<(), JobError> {
    let model = Model::gpt(24, 1_792, 14, 50_304, 1_024, 4);
    let mut pinned = Pinned::default();
    let result = job.call(at("main", "train.py", 140), |job| {
        let mut net = Net::load(job, &model)?;
        for step in 0..steps {
            job.span(&format!("step {step}"), |job| net.train_step(job))?;
            // `stream.wait_event(copied)`: the optimizer must not change what is still being copied.
            let left = pinned.done_us.saturating_sub(job.now_us()).max(0);
            job.wait(left);
            pinned.waited_us += left;
            net.update(job)?;
            if (step + 1).is_multiple_of(choices.count("every").max(1)) {
                job.span("save", |job| {
                    job.call(at("save", "checkpoint.py", 44), |job| match choices.word("copy") {
                        "pinned" => {
                            pinned.save(job, &net);
                            Ok(())
                        }
                        word => save(job, &net, word == "whole"),
                    })
                })?;
            }
        }
        Ok(())
    });
    notes.extend(pinned.note());
    result
}

/// Saves `{name: tensor.clone() for name, tensor in state.items()}` and copies it to the host.
fn save<D: Device>(job: &mut Job<D>, net: &Net, at_once: bool) -> Result<(), JobError> {
    let sizes: Vec<u64> = net.state().collect();
    let mut copies = Vec::new();
    for bytes in sizes {
        let copy = job.call(at("<dictcomp>", "checkpoint.py", 47), |job| job.alloc(bytes, sites::CLONE_OP))?;
        let copying = (bytes / PAGEABLE_RATE) as i64;
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

impl Pinned {
    /// Saves `buffer.copy_(tensor, non_blocking=True)` for each tensor, on a stream for copies. Nothing is allocated on the
    /// device.
    fn save<D: Device>(&mut self, job: &mut Job<D>, net: &Net) {
        let (mut state, mut buffers) = (0, 0);
        for bytes in net.state() {
            state += bytes;
            // PyTorch's allocator of pinned memory rounds up to a power of two.
            buffers += bytes.next_power_of_two();
            job.wait(START_US);
        }
        (self.state, self.buffers) = (state, buffers);
        self.saved += 1;
        self.done_us = job.now_us() + (state / PINNED_RATE) as i64;
    }

    /// Returns what the trace of the device does not show.
    fn note(&self) -> Option<String> {
        (self.saved > 0).then(|| {
            let waited = trace::units::Micros(self.waited_us / self.saved as i64);
            format!(
                "Saved {} of {} through pinned host memory: {} of it, as each tensor takes a power of two, and nothing on the \
                 device. The optimizer waited {waited} for each, on average.",
                counted(self.saved, "checkpoint"),
                Bytes(self.state),
                Bytes(self.buffers),
            )
        })
    }
}
