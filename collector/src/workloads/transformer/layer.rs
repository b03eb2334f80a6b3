//! One layer, forward and backward.

use budget::{Attention, Block, Matrix, Model, Norm};

use super::gradients::Gradients;
use super::linear::{adapt, gather_tokens, kept_if, linear_gradients, stream_bytes, working};
use super::mlp::{self, SavedMlp};
use crate::workloads::job::{Call, Device, Job, JobError, Site, Tensor, at};
use crate::workloads::sites;

/// What a layer keeps for its backward pass.
pub(super) struct Saved {
    norm_1: Vec<Tensor>,
    qkv: Tensor,
    /// What the adapters keep between their matrices.
    adapters: Vec<Tensor>,
    /// The attention's output, and what its own backward pass needs.
    attention: Vec<Tensor>,
    /// The dropout masks of both halves.
    masks: Vec<Tensor>,
    /// The sum after the first half, if the second half reads it.
    residual_1: Option<Tensor>,
    /// The second norm, if there is one.
    norm_2: Vec<Tensor>,
    mlp: SavedMlp,
    output: Tensor,
}

impl Saved {
    /// Frees everything but the layer's output, as a forward pass without gradients does.
    pub(super) fn drop_all_but_output<D: Device>(self, job: &mut Job<D>) -> Tensor {
        let Self { norm_1, qkv, adapters, attention, masks, residual_1, norm_2, mlp, output } = self;
        job.free_all(norm_1.into_iter().chain([qkv]).chain(adapters).chain(attention).chain(masks));
        job.free_all(norm_2.into_iter().chain(residual_1).chain(mlp.tensors()));
        output
    }
}

/// The matrices of queries, keys and values.
const QKV: &[Matrix] = &[Matrix::Query, Matrix::Key, Matrix::Value, Matrix::Fused];
const ATTENTION: Call = at("forward", "model.py", 129);
const MLP: Call = at("forward", "model.py", 130);

/// Runs the forward pass of a layer. Its input is the residual stream, which the caller holds.
pub(super) fn forward_layer<D: Device>(job: &mut Job<D>, model: &Model) -> Result<Saved, JobError> {
    let stream = stream_bytes(model);
    let tokens = model.batch * model.seq;
    let element = model.precision.element();
    let mut masks = Vec::new();
    let mut adapters = Vec::new();

    // A single norm is read by both halves.
    let keeps_mlp_norm = mlp::keeps_norm(model);
    let keeps_norm_1 = model.keeps_input_of(QKV) || model.block == Block::ParallelOneNorm && keeps_mlp_norm;
    let mut norm_1 = job.call(ATTENTION, |job| norm(job, model, keeps_norm_1))?;
    let qkv = job.call(ATTENTION, |job| {
        job.call(at("forward", "attention.py", 71), |job| {
            gather_tokens(job, model)?;
            job.alloc(tokens * model.qkv_width() * element, sites::LINEAR_OP)
        })
    })?;
    job.call(ATTENTION, |job| adapt(job, model, tokens, QKV, &mut adapters))?;
    if model.block != Block::ParallelOneNorm && !keeps_norm_1 {
        drop_output(job, &mut norm_1);
    }
    let attention = job.call(ATTENTION, |job| attend(job, model))?;
    let attended = job.call(ATTENTION, |job| {
        let projected = job.call(at("forward", "attention.py", 93), |job| working(job, stream, sites::LINEAR_OP))?;
        adapt(job, model, tokens, &[Matrix::Projection], &mut adapters)?;
        drop_out(job, model, projected, &mut masks)
    })?;
    // Parallel halves are added to the stream together.
    let (residual_1, attended) = match model.block {
        Block::Sequential => (Some(job.call(ATTENTION, |job| add(job, model, attended))?), None),
        Block::Parallel | Block::ParallelOneNorm => (None, Some(attended)),
    };
    let mut norm_2 = match model.block {
        Block::Sequential | Block::Parallel => job.call(MLP, |job| norm(job, model, keeps_mlp_norm))?,
        Block::ParallelOneNorm => Vec::new(),
    };
    let (mlp, down) = job.call(MLP, |job| mlp::forward(job, model))?;
    match model.block {
        Block::Sequential | Block::Parallel if !keeps_mlp_norm => drop_output(job, &mut norm_2),
        Block::ParallelOneNorm if !keeps_norm_1 => drop_output(job, &mut norm_1),
        _ => {}
    }
    let output = job.call(MLP, |job| {
        let dropped = drop_out(job, model, down, &mut masks)?;
        let sum = add(job, model, dropped)?;
        job.free_all(attended);
        Ok::<_, JobError>(sum)
    })?;
    Ok(Saved { norm_1, qkv, adapters, attention, masks, residual_1, norm_2, mlp, output })
}

/// Allocates a norm's output and its statistics: mean and deviation of each token, or the deviation alone.
fn norm<D: Device>(job: &mut Job<D>, model: &Model, is_kept: bool) -> Result<Vec<Tensor>, JobError> {
    let (site, statistics) = match model.norm {
        Norm::Layer => (sites::LAYER_NORM_OP, 2),
        Norm::Rms => (sites::RMS_NORM_OP, 1),
    };
    let tokens = (model.batch * model.seq).div_ceil(model.share.tokens);
    Ok(vec![kept_if(job, is_kept, stream_bytes(model), site)?, job.alloc(statistics * 4 * tokens, site)?])
}

/// Frees a norm's output, which nothing keeps, and leaves its statistics.
fn drop_output<D: Device>(job: &mut Job<D>, norm: &mut Vec<Tensor>) {
    let output: Vec<Tensor> = norm.drain(..norm.len().min(1)).collect();
    job.free_all(output);
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
    masks.push(job.alloc(model.batch * model.seq * model.residual_width(), sites::DROPOUT_OP)?);
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

/// Allocates the gradient of a norm's input, and those of its weights.
fn norm_backward<D: Device>(job: &mut Job<D>, model: &Model, gradients: &mut Gradients) -> Result<Tensor, JobError> {
    let below = job.alloc(stream_bytes(model), norm_site(model))?;
    if model.lora.is_none() {
        for (numbers, site) in model.norm_tensors().zip([sites::WEIGHT_GRADIENT, sites::BIAS_GRADIENT]) {
            gradients.add(job, model, numbers, site)?;
        }
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
    gradients: &mut Gradients,
) -> Result<Tensor, JobError> {
    let element = model.precision.element();
    let (stream, tokens) = (stream_bytes(model), model.batch * model.seq);
    let Saved { norm_1: kept_1, qkv, adapters, attention, masks, residual_1, norm_2: kept_2, mlp, output } = saved;

    job.free(output);
    let narrow = mlp::backward(job, model, mlp, gradients)?;
    // Gradients that are held until they are added to that of the layer's input.
    let carried = match model.block {
        Block::Sequential => {
            let below = norm_backward(job, model, gradients)?;
            job.free_all(kept_2.into_iter().chain([narrow, flowing]).chain(residual_1));
            vec![below]
        }
        Block::Parallel => {
            let below = norm_backward(job, model, gradients)?;
            job.free_all(kept_2.into_iter().chain([narrow]));
            vec![below, flowing]
        }
        Block::ParallelOneNorm => vec![narrow, flowing],
    };

    let attended = job.alloc(tokens * model.query_width() * element, sites::INPUT_GRADIENT)?;
    linear_gradients(job, model, (model.projection(), &[Matrix::Projection]), gradients)?;
    if model.attention == Attention::Plain {
        // The gradient of the scores is as large as the scores.
        let bytes = model.batch * model.heads * model.seq * model.seq * element;
        job.touch(bytes, sites::SOFTMAX_BACKWARD)?;
    }
    let split = job.alloc(tokens * model.qkv_width() * element, sites::ATTENTION_BACKWARD)?;
    job.free_all(attention.into_iter().chain([attended, qkv]));
    let narrow = job.alloc(stream, sites::INPUT_GRADIENT)?;
    linear_gradients(job, model, (model.qkv(), QKV), gradients)?;
    job.free_all(adapters.into_iter().chain([split]));
    let flowing = norm_backward(job, model, gradients)?;
    job.free_all(kept_1.into_iter().chain(masks).chain([narrow]).chain(carried));
    Ok(flowing)
}
