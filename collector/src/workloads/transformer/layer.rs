//! One layer, forward and backward.

use budget::{Attention, Model, Part};

use super::gradients::Gradients;
use super::stream_bytes;
use crate::workloads::job::{Call, Device, Job, JobError, Site, Tensor, at};
use crate::workloads::sites;

/// What a layer keeps for its backward pass.
pub(super) struct Saved {
    norm_1: Vec<Tensor>,
    qkv: Tensor,
    /// The attention's output, and what its own backward pass needs.
    attention: Vec<Tensor>,
    /// The dropout masks of both halves.
    masks: Vec<Tensor>,
    /// The sum after the first half.
    residual_1: Tensor,
    norm_2: Vec<Tensor>,
    /// The MLP's wide result, before and after the activation function.
    mlp: [Tensor; 2],
    output: Tensor,
}

impl Saved {
    /// Frees everything but the layer's output, as a forward pass without gradients does.
    pub(super) fn drop_all_but_output<D: Device>(self, job: &mut Job<D>) -> Tensor {
        let Self { norm_1, qkv, attention, masks, residual_1, norm_2, mlp, output } = self;
        job.free_all(norm_1.into_iter().chain([qkv]).chain(attention).chain(masks));
        job.free_all(norm_2.into_iter().chain([residual_1]).chain(mlp));
        output
    }
}

const ATTENTION: Call = at("forward", "model.py", 129);
const MLP: Call = at("forward", "model.py", 130);

/// Allocates a tensor that nothing keeps.
fn working<D: Device>(job: &mut Job<D>, bytes: u64, site: Site) -> Result<Tensor, JobError> {
    job.part(Part::Working, |job| job.alloc(bytes, site))
}

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
    let residual_1 = job.call(ATTENTION, |job| add(job, model, attended))?;
    let norm_2 = job.call(MLP, |job| norm(job, model))?;
    let wide = tokens * model.ffn * element;
    let (mlp, narrow) = job.call(MLP, |job| {
        let before = job.call(at("forward", "mlp.py", 41), |job| job.alloc(wide, sites::LINEAR_OP))?;
        let after = job.call(at("forward", "mlp.py", 42), |job| job.alloc(wide, sites::GELU_OP))?;
        let narrow = job.call(at("forward", "mlp.py", 43), |job| working(job, stream, sites::LINEAR_OP))?;
        Ok::<_, JobError>(([before, after], narrow))
    })?;
    let output = job.call(MLP, |job| {
        let dropped = drop_out(job, model, narrow, &mut masks)?;
        add(job, model, dropped)
    })?;
    Ok(Saved { norm_1, qkv, attention, masks, residual_1, norm_2, mlp, output })
}

/// Allocates a norm's output and statistics.
fn norm<D: Device>(job: &mut Job<D>, model: &Model) -> Result<Vec<Tensor>, JobError> {
    let statistics = 2 * 4 * model.batch * model.seq;
    Ok(vec![job.alloc(stream_bytes(model), sites::LAYER_NORM_OP)?, job.alloc(statistics, sites::LAYER_NORM_OP)?])
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

/// Runs the backward pass of a norm, and returns the gradient of its input.
fn norm_backward<D: Device>(job: &mut Job<D>, model: &Model, gradients: &mut Gradients) -> Result<Tensor, JobError> {
    let below = job.alloc(stream_bytes(model), sites::NORM_BACKWARD)?;
    for site in [sites::WEIGHT_GRADIENT, sites::BIAS_GRADIENT] {
        gradients.add(job, model, model.hidden, site)?;
    }
    Ok(below)
}

/// Runs the backward pass of a layer, which frees what it kept. Returns the gradient of its input.
pub(super) fn backward_layer<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    saved: Saved,
    flowing: Tensor,
    gradients: &mut Gradients,
) -> Result<Tensor, JobError> {
    let element = model.precision.element();
    let (stream, tokens) = (stream_bytes(model), model.batch * model.seq);
    let Saved { norm_1, qkv, attention, masks, residual_1, norm_2, mlp, output } = saved;

    job.free(output);
    let narrow = mlp_backward(job, model, mlp, gradients)?;
    let below = norm_backward(job, model, gradients)?;
    job.free_all(norm_2.into_iter().chain([narrow, flowing, residual_1]));

    let attended = job.alloc(tokens * model.query_width() * element, sites::INPUT_GRADIENT)?;
    gradients.add_linear(job, model, model.projection())?;
    if model.attention == Attention::Plain {
        // The gradient of the scores is as large as the scores.
        let bytes = model.batch * model.heads * model.seq * model.seq * element;
        job.touch(bytes, sites::SOFTMAX_BACKWARD)?;
    }
    let split = job.alloc(tokens * model.qkv_width() * element, sites::ATTENTION_BACKWARD)?;
    job.free_all(attention.into_iter().chain([attended, qkv]));
    let narrow = job.alloc(stream, sites::INPUT_GRADIENT)?;
    gradients.add_linear(job, model, model.qkv())?;
    job.free(split);
    let flowing = norm_backward(job, model, gradients)?;
    job.free_all(norm_1.into_iter().chain(masks).chain([narrow, below]));
    Ok(flowing)
}

/// Runs the backward pass of an MLP, and returns the gradient of its input.
fn mlp_backward<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    [before, after]: [Tensor; 2],
    gradients: &mut Gradients,
) -> Result<Tensor, JobError> {
    let wide = model.batch * model.seq * model.ffn * model.precision.element();
    let gradient = job.alloc(wide, sites::INPUT_GRADIENT)?;
    gradients.add_linear(job, model, model.narrowing())?;
    job.free(after);
    let inner = job.alloc(wide, sites::GELU_BACKWARD)?;
    job.free_all([gradient, before]);
    let narrow = job.alloc(stream_bytes(model), sites::INPUT_GRADIENT)?;
    gradients.add_linear(job, model, model.widening())?;
    job.free(inner);
    Ok(narrow)
}
