//! One layer, forward and backward.

use shared::budget::{Attention, Block, Linear, Model, Norm, Part};

use super::mlp::{self, SavedMlp};
use super::stream_bytes;
use crate::workloads::job::{Call, Device, Job, JobError, Site, Tensor, at};
use crate::workloads::sites;

/// What a layer keeps for its backward pass.
pub(super) struct Saved {
    norm_1: [Tensor; 2],
    qkv: Tensor,
    /// The attention's output, and what its own backward pass needs.
    attention: Vec<Tensor>,
    /// The dropout masks of both halves.
    masks: Vec<Tensor>,
    /// The sum after the first half, if the second half reads it.
    residual_1: Option<Tensor>,
    /// The second norm, if there is one.
    norm_2: Option<[Tensor; 2]>,
    mlp: SavedMlp,
    output: Tensor,
}

impl Saved {
    /// Frees everything but the layer's output, as a forward pass without gradients does.
    pub(super) fn drop_all_but_output<D: Device>(self, job: &mut Job<D>) -> Tensor {
        let Self { norm_1, qkv, attention, masks, residual_1, norm_2, mlp, output } = self;
        job.free_all(norm_1.into_iter().chain([qkv]).chain(attention).chain(masks));
        job.free_all(norm_2.into_iter().flatten().chain(residual_1).chain(mlp.tensors()));
        output
    }
}

const ATTENTION: Call = at("forward", "model.py", 129);
const MLP: Call = at("forward", "model.py", 130);

/// Runs the forward pass of a layer. Its input is the residual stream, which the caller holds.
pub(super) fn forward_layer<D: Device>(job: &mut Job<D>, model: &Model) -> Result<Saved, JobError> {
    let stream = stream_bytes(model);
    let tokens = model.batch * model.seq;
    let element = model.precision.element();
    let mut masks = Vec::new();

    let norm_1 = job.call(ATTENTION, |job| norm(job, model))?;
    let qkv = job.call(ATTENTION, |job| {
        job.call(at("forward", "attention.py", 71), |job| {
            job.alloc(tokens * model.qkv_width() * element, sites::LINEAR_OP)
        })
    })?;
    let attention = job.call(ATTENTION, |job| attend(job, model))?;
    let attended = job.call(ATTENTION, |job| {
        let projected = job.call(at("forward", "attention.py", 93), |job| working(job, stream, sites::LINEAR_OP))?;
        drop_out(job, model, projected, &mut masks)
    })?;
    // Parallel halves are added to the stream together.
    let (residual_1, attended) = match model.block {
        Block::Sequential => (Some(job.call(ATTENTION, |job| add(job, model, attended))?), None),
        Block::Parallel | Block::ParallelOneNorm => (None, Some(attended)),
    };
    let norm_2 = match model.block {
        Block::Sequential | Block::Parallel => Some(job.call(MLP, |job| norm(job, model))?),
        Block::ParallelOneNorm => None,
    };
    let (mlp, down) = job.call(MLP, |job| mlp::forward(job, model))?;
    let output = job.call(MLP, |job| {
        let dropped = drop_out(job, model, down, &mut masks)?;
        let sum = add(job, model, dropped)?;
        job.free_all(attended);
        Ok::<_, JobError>(sum)
    })?;
    Ok(Saved { norm_1, qkv, attention, masks, residual_1, norm_2, mlp, output })
}

/// Allocates a norm's output and its statistics: mean and deviation of each token, or the deviation alone.
fn norm<D: Device>(job: &mut Job<D>, model: &Model) -> Result<[Tensor; 2], JobError> {
    let (site, statistics) = match model.norm {
        Norm::Layer => (sites::LAYER_NORM_OP, 2),
        Norm::Rms => (sites::RMS_NORM_OP, 1),
    };
    let tokens = model.batch * model.seq;
    Ok([job.alloc(stream_bytes(model), site)?, job.alloc(statistics * 4 * tokens, site)?])
}

/// Allocates a tensor that nothing keeps.
pub(super) fn working<D: Device>(job: &mut Job<D>, bytes: u64, site: Site) -> Result<Tensor, JobError> {
    job.part(Part::Working, |job| job.alloc(bytes, site))
}

/// Computes attention from queries, keys and values. The first of the kept tensors is its output.
fn attend<D: Device>(job: &mut Job<D>, model: &Model) -> Result<Vec<Tensor>, JobError> {
    // As wide as the queries, which the projection makes as wide as the residual stream.
    let result = model.batch * model.seq * model.query_width() * model.precision.element();
    let rows = model.batch * model.heads * model.seq;
    match model.attention {
        Attention::Flash => job.call(at("forward", "attention.py", 84), |job| {
            Ok(vec![job.alloc(result, sites::FLASH_OP)?, job.alloc(4 * rows, sites::FLASH_OP)?])
        }),
        Attention::Plain => {
            let matrix = rows * model.seq;
            let bytes = matrix * model.precision.element();
            let scores = job.call(at("forward", "attention.py", 78), |job| working(job, bytes, sites::MATMUL_OP))?;
            let softmax = job.call(at("forward", "attention.py", 80), |job| job.alloc(bytes, sites::SOFTMAX_OP))?;
            job.free(scores);
            let mut kept = Vec::new();
            if model.dropout {
                job.call(at("forward", "attention.py", 81), |job| {
                    kept.extend([job.alloc(matrix, sites::DROPOUT_OP)?, job.alloc(bytes, sites::DROPOUT_OP)?]);
                    Ok::<_, JobError>(())
                })?;
            }
            let out = job.call(at("forward", "attention.py", 82), |job| job.alloc(result, sites::MATMUL_OP))?;
            Ok([vec![out, softmax], kept].concat())
        }
    }
}

/// Applies dropout to the result of a half, if there is any.
fn drop_out<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    result: Tensor,
    masks: &mut Vec<Tensor>,
) -> Result<Tensor, JobError> {
    if !model.dropout {
        return Ok(result);
    }
    masks.push(job.alloc(model.batch * model.seq * model.hidden, sites::DROPOUT_OP)?);
    let dropped = working(job, stream_bytes(model), sites::DROPOUT_OP)?;
    job.free(result);
    Ok(dropped)
}

/// Adds the result of a half to the residual stream.
fn add<D: Device>(job: &mut Job<D>, model: &Model, result: Tensor) -> Result<Tensor, JobError> {
    let sum = job.alloc(stream_bytes(model), sites::ADD_OP)?;
    job.free(result);
    Ok(sum)
}

/// Allocates the gradients of a linear layer's weights.
pub(super) fn linear_gradients<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    linear: Linear,
    gradients: &mut Vec<Tensor>,
) -> Result<(), JobError> {
    let element = model.precision.element();
    for (numbers, site) in linear.tensors().zip([sites::WEIGHT_GRADIENT, sites::BIAS_GRADIENT]) {
        gradients.push(job.part(Part::Gradients, |job| job.alloc(numbers * element, site))?);
    }
    Ok(())
}

/// Allocates the gradient of a norm's input, and those of its weights.
fn norm_backward<D: Device>(job: &mut Job<D>, model: &Model, gradients: &mut Vec<Tensor>) -> Result<Tensor, JobError> {
    let element = model.precision.element();
    let below = job.alloc(stream_bytes(model), norm_site(model))?;
    for (numbers, site) in model.norm_tensors().zip([sites::WEIGHT_GRADIENT, sites::BIAS_GRADIENT]) {
        gradients.push(job.part(Part::Gradients, |job| job.alloc(numbers * element, site))?);
    }
    Ok(below)
}

/// Returns the call site of a norm's backward pass.
pub(super) fn norm_site(model: &Model) -> Site {
    match model.norm {
        Norm::Layer => sites::NORM_BACKWARD,
        Norm::Rms => sites::RMS_NORM_BACKWARD,
    }
}

/// Runs the backward pass of a layer: takes the gradient of its output and returns that of its input.
pub(super) fn backward_layer<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    saved: Saved,
    flowing: Tensor,
    gradients: &mut Vec<Tensor>,
) -> Result<Tensor, JobError> {
    let element = model.precision.element();
    let (stream, tokens) = (stream_bytes(model), model.batch * model.seq);
    let Saved { norm_1: kept_1, qkv, attention, masks, residual_1, norm_2: kept_2, mlp, output } = saved;

    job.free(output);
    let narrow = mlp::backward(job, model, mlp, gradients)?;
    // Gradients that are held until they are added to that of the layer's input.
    let carried = match model.block {
        Block::Sequential => {
            let below = norm_backward(job, model, gradients)?;
            job.free_all(kept_2.into_iter().flatten().chain([narrow, flowing]).chain(residual_1));
            vec![below]
        }
        Block::Parallel => {
            let below = norm_backward(job, model, gradients)?;
            job.free_all(kept_2.into_iter().flatten().chain([narrow]));
            vec![below, flowing]
        }
        Block::ParallelOneNorm => vec![narrow, flowing],
    };

    let attended = job.alloc(tokens * model.query_width() * element, sites::INPUT_GRADIENT)?;
    linear_gradients(job, model, model.projection(), gradients)?;
    if model.attention == Attention::Plain {
        // The gradient of the scores is as large as the scores.
        let bytes = model.batch * model.heads * model.seq * model.seq * element;
        job.touch(bytes, sites::SOFTMAX_BACKWARD)?;
    }
    let split = job.alloc(tokens * model.qkv_width() * element, sites::ATTENTION_BACKWARD)?;
    job.free_all(attention.into_iter().chain([attended, qkv]));
    let narrow = job.alloc(stream, sites::INPUT_GRADIENT)?;
    linear_gradients(job, model, model.qkv(), gradients)?;
    job.free(split);
    let flowing = norm_backward(job, model, gradients)?;
    job.free_all(kept_1.into_iter().chain(masks).chain([narrow]).chain(carried));
    Ok(flowing)
}
