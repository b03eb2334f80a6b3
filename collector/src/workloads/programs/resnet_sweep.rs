//! ResNet-50 with growing batches.

use budget::Part;
use trace::units::{Bytes, counted};

use crate::workloads::job::{Call, Device, Job, JobError, Tensor, at};
use crate::workloads::params::{Choices, Param, Values};
use crate::workloads::sites;

pub(in crate::workloads) const PARAMS: &[Param] = &[
    Param {
        name: "batch",
        default: "growing",
        values: Values::WordsOrCount(&["growing"], 1, 65_536),
        help: "images in every batch, or growing by first and more",
    },
    Param { name: "first", default: "32", values: Values::Count(1, 4_096), help: "images in the first batch" },
    Param {
        name: "more",
        default: "32",
        values: Values::Count(1, 4_096),
        help: "additional images in each later batch",
    },
    Param {
        name: "image",
        default: "224",
        values: Values::Count(32, 1_024),
        help: "width and height of an image in pixels",
    },
    Param {
        name: "precision",
        default: "fp32",
        values: Values::Words(&["fp32", "bf16"]),
        help: "number format of the activations; weights are fp32",
    },
];

/// Number of blocks and inner width of each stage (He et al. 2016, table 1). A block's output is four times as wide.
const STAGES: [(u64, u64); 4] = [(3, 64), (4, 128), (6, 256), (3, 512)];
const CLASSES: u64 = 1_000;

/// A convolution with its norm.
#[derive(Clone, Copy)]
struct Conv {
    /// Input channels, output channels and the width of the kernel.
    shape: [u64; 3],
    /// Width of its output in pixels.
    across: u64,
    line: Call,
}

impl Conv {
    fn weights(&self) -> u64 {
        let [from, to, kernel] = self.shape;
        from * to * kernel * kernel
    }

    fn output(&self, batch: u64, element: u64) -> u64 {
        batch * self.shape[1] * self.across * self.across * element
    }
}

/// Returns all convolutions of the network, in order.
fn convolutions(image: u64) -> Vec<Conv> {
    let mut all = vec![Conv { shape: [3, 64, 7], across: image.div_ceil(2), line: at("forward", "resnet.py", 268) }];
    let mut from = 64;
    let mut across = image.div_ceil(4);
    for (stage, (blocks, width)) in (0..).zip(STAGES) {
        for block in 0..blocks {
            let before = across;
            if stage > 0 && block == 0 {
                across = across.div_ceil(2);
            }
            let line = |line| at("forward", "resnet.py", line);
            all.push(Conv { shape: [from, width, 1], across: before, line: line(146) });
            all.push(Conv { shape: [width, width, 3], across, line: line(150) });
            all.push(Conv { shape: [width, 4 * width, 1], across, line: line(154) });
            if block == 0 {
                all.push(Conv { shape: [from, 4 * width, 1], across, line: line(158) });
            }
            from = 4 * width;
        }
    }
    all
}

pub(in crate::workloads) fn run<D: Device>(
    job: &mut Job<D>,
    choices: &Choices,
    steps: u64,
    notes: &mut Vec<String>,
) -> Result<(), JobError> {
    let net = convolutions(choices.count("image"));
    let element = if choices.word("precision") == "bf16" { 2 } else { 4 };
    job.call(at("main", "sweep.py", 64), |job| {
        job.call(at("build", "sweep.py", 22), |job| load(job, &net))?;
        let mut momentum = false;
        for step in 0..steps {
            let batch = match choices.count("batch") {
                0 => choices.count("first") + step * choices.count("more"),
                fixed => fixed,
            };
            let tried = job.attempt(|job| {
                job.span(&format!("batch {batch}"), |job| {
                    for _ in 0..2 {
                        train(job, &net, batch, element, &mut momentum)?;
                    }
                    Ok(())
                })
            });
            match tried {
                Ok(()) => {}
                Err(JobError::OutOfMemory(failed)) => {
                    let largest = match step {
                        0 => "no batch fit".to_owned(),
                        _ if choices.count("batch") > 0 => format!("it fit {}", counted(step, "time")),
                        _ => format!("{} was the largest batch tried that fit", batch - choices.count("more")),
                    };
                    notes.push(format!(
                        "A batch of {batch} failed at a request of {}; {largest}.",
                        Bytes(failed.rounded)
                    ));
                    return Err(JobError::OutOfMemory(failed));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })
}

fn load<D: Device>(job: &mut Job<D>, net: &[Conv]) -> Result<(), JobError> {
    job.part(Part::Weights, |job| {
        for conv in net {
            // The matrix, then weight, bias, mean and variance of the norm.
            let _kernel = job.alloc(conv.weights() * 4, sites::PARAMETER_OP)?;
            for _ in 0..4 {
                let _norm = job.alloc(conv.shape[1] * 4, sites::PARAMETER_OP)?;
            }
        }
        let _classes = job.alloc(2_048 * CLASSES * 4, sites::PARAMETER_OP)?;
        let _bias = job.alloc(CLASSES * 4, sites::PARAMETER_OP)?;
        Ok(())
    })
}

/// Trains one batch, forward and backward, with a step of SGD with momentum.
fn train<D: Device>(
    job: &mut Job<D>,
    net: &[Conv],
    batch: u64,
    element: u64,
    momentum: &mut bool,
) -> Result<(), JobError> {
    let image = net.first().map_or(0, |conv| 4 * conv.across * conv.across * 3);
    let input = job.call(at("train", "sweep.py", 37), |job| job.alloc(batch * image * element, sites::COPY_OP))?;
    let kept = job.span("forward", |job| {
        job.call(at("train", "sweep.py", 39), |job| {
            job.part(Part::Activations, |job| forward(job, net, batch, element))
        })
    })?;
    let gradients = job.span("backward", |job| job.in_engine(|job| backward(job, net, kept, batch, element)))?;
    job.call(at("train", "sweep.py", 42), |job| {
        if !*momentum {
            job.part(Part::OptimizerState, |job| {
                for conv in net {
                    let _buffer = job.alloc(conv.weights() * 4, sites::SGD_STATE_OP)?;
                }
                Ok::<_, JobError>(())
            })?;
            *momentum = true;
        }
        job.free_all(gradients);
        job.free(input);
        Ok(())
    })
}

/// Runs the forward pass. Each convolution keeps its output, which the norm needs, the norm's output and its
/// statistics.
fn forward<D: Device>(job: &mut Job<D>, net: &[Conv], batch: u64, element: u64) -> Result<Vec<[Tensor; 3]>, JobError> {
    let mut kept = Vec::with_capacity(net.len());
    for conv in net {
        let bytes = conv.output(batch, element);
        kept.push(job.call(conv.line, |job| {
            // The library's workspace: as large as an unrolled tile of the input.
            let [from, _, kernel] = conv.shape;
            let scratch = (batch * from * kernel * kernel * conv.across * 8).min(256 << 20);
            job.part(Part::Working, |job| job.touch(scratch, sites::CONV_WORKSPACE))?;
            let output = job.alloc(bytes, sites::CONV_OP)?;
            let norm = job.alloc(bytes, sites::BATCH_NORM_OP)?;
            Ok::<_, JobError>([output, norm, job.alloc(2 * conv.shape[1] * 4, sites::BATCH_NORM_OP)?])
        })?);
    }
    let scores =
        job.call(at("forward", "resnet.py", 280), |job| job.alloc(batch * CLASSES * element, sites::LINEAR_OP))?;
    job.touch(batch * CLASSES * 4, sites::LOG_SOFTMAX_OP)?;
    job.free(scores);
    Ok(kept)
}

fn backward<D: Device>(
    job: &mut Job<D>,
    net: &[Conv],
    kept: Vec<[Tensor; 3]>,
    batch: u64,
    element: u64,
) -> Result<Vec<Tensor>, JobError> {
    let mut gradients = Vec::with_capacity(net.len());
    let mut flowing: Option<Tensor> = None;
    for (conv, [output, norm, statistics]) in net.iter().zip(kept).rev() {
        let bytes = conv.output(batch, element);
        let through_norm = job.alloc(bytes, sites::BATCH_NORM_BACKWARD)?;
        job.free_all(flowing.take().into_iter().chain([norm, statistics]));
        let [from, ..] = conv.shape;
        let below = job.alloc(batch * from * conv.across * conv.across * element, sites::CONV_BACKWARD)?;
        gradients.push(job.part(Part::Gradients, |job| job.alloc(conv.weights() * 4, sites::CONV_WEIGHT_GRADIENT))?);
        job.free_all([through_norm, output]);
        flowing = Some(below);
    }
    job.free_all(flowing);
    Ok(gradients)
}
