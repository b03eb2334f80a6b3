//! One layer, forward and backward.

use shared::budget::{Attention, Model, Part};

use super::stream_bytes;
use crate::workloads::job::{Call, Device, Job, JobError, Tensor, at};
use crate::workloads::sites;

/// What a layer keeps for its backward pass.
pub(super) struct Saved {
    norm_1: [Tensor; 2],
    qkv: Tensor,
    /// The attention's output, and what its own backward pass needs.
    attention: Vec<Tensor>,
    /// The dropout masks of both halves.
    masks: Vec<Tensor>,
    residual_1: Tensor,
    norm_2: [Tensor; 2],
    up: Tensor,
    activation: Tensor,
    output: Tensor,
}

impl Saved {
    /// Lets go of all but the layer's output: what is left of a forward pass without gradients.
    pub(super) fn drop_all_but_output<D: Device>(self, job: &mut Job<D>) -> Tensor {
        let Self { norm_1, qkv, attention, masks, residual_1, norm_2, up, activation, output } = self;
        job.free_all(norm_1.into_iter().chain([qkv]).chain(attention).chain(masks));
        job.free_all(norm_2.into_iter().chain([residual_1, up, activation]));
        output
    }
}

const ATTENTION: Call = at("forward", "model.py", 129);
const MLP: Call = at("forward", "model.py", 130);

/// The forward pass of a layer. Its input is the residual stream, which the caller holds.
pub(super) fn forward_layer<D: Device>(job: &mut Job<D>, model: &Model) -> Result<Saved, JobError> {
    let stream = stream_bytes(model);
    let tokens = model.batch * model.seq;
    let element = model.precision.element();
    let mut masks = Vec::new();

    let norm_1 = job.call(ATTENTION, |job| norm(job, stream, tokens))?;
    let qkv = job.call(ATTENTION, |job| {
        job.call(at("forward", "attention.py", 71), |job| {
            job.alloc(tokens * model.qkv_width() * element, sites::LINEAR_OP)
        })
    })?;
    let attention = job.call(ATTENTION, |job| attend(job, model))?;
    let residual_1 = job.call(ATTENTION, |job| {
        let projected = job.call(at("forward", "attention.py", 93), |job| working(job, stream, sites::LINEAR_OP))?;
        finish_half(job, model, projected, &mut masks)
    })?;

    let norm_2 = job.call(MLP, |job| norm(job, stream, tokens))?;
    let wide = tokens * model.ffn * element;
    let up = job.call(MLP, |job| job.call(at("forward", "mlp.py", 41), |job| job.alloc(wide, sites::LINEAR_OP)))?;
    let activation =
        job.call(MLP, |job| job.call(at("forward", "mlp.py", 42), |job| job.alloc(wide, sites::GELU_OP)))?;
    let output = job.call(MLP, |job| {
        let down = job.call(at("forward", "mlp.py", 43), |job| working(job, stream, sites::LINEAR_OP))?;
        finish_half(job, model, down, &mut masks)
    })?;
    Ok(Saved { norm_1, qkv, attention, masks, residual_1, norm_2, up, activation, output })
}

/// A norm's output and its statistics.
fn norm<D: Device>(job: &mut Job<D>, stream: u64, tokens: u64) -> Result<[Tensor; 2], JobError> {
    Ok([job.alloc(stream, sites::LAYER_NORM_OP)?, job.alloc(2 * 4 * tokens, sites::LAYER_NORM_OP)?])
}

/// A tensor that nothing keeps.
fn working<D: Device>(job: &mut Job<D>, bytes: u64, site: crate::workloads::job::Site) -> Result<Tensor, JobError> {
    job.part(Part::Working, |job| job.alloc(bytes, site))
}

/// From queries, keys and values to the attention's output, which is the first of what is kept.
fn attend<D: Device>(job: &mut Job<D>, model: &Model) -> Result<Vec<Tensor>, JobError> {
    let stream = stream_bytes(model);
    let rows = model.batch * model.heads * model.seq;
    match model.attention {
        Attention::Flash => job.call(at("forward", "attention.py", 84), |job| {
            Ok(vec![job.alloc(stream, sites::FLASH_OP)?, job.alloc(4 * rows, sites::FLASH_OP)?])
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
            let out = job.call(at("forward", "attention.py", 82), |job| job.alloc(stream, sites::MATMUL_OP))?;
            Ok([vec![out, softmax], kept].concat())
        }
    }
}

/// Dropout of a half's result, and its sum with the residual stream.
fn finish_half<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    result: Tensor,
    masks: &mut Vec<Tensor>,
) -> Result<Tensor, JobError> {
    let stream = stream_bytes(model);
    let mut result = result;
    if model.dropout {
        masks.push(job.alloc(model.batch * model.seq * model.hidden, sites::DROPOUT_OP)?);
        let dropped = working(job, stream, sites::DROPOUT_OP)?;
        job.free(result);
        result = dropped;
    }
    let sum = job.alloc(stream, sites::ADD_OP)?;
    job.free(result);
    Ok(sum)
}

/// The backward pass of a layer: takes the gradient of its output, gives that of its input.
pub(super) fn backward_layer<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    saved: Saved,
    flowing: Tensor,
    gradients: &mut Vec<Tensor>,
) -> Result<Tensor, JobError> {
    let element = model.precision.element();
    let stream = stream_bytes(model);
    let wide_bytes = model.batch * model.seq * model.ffn * element;
    let [norm_1, _, qkv_matrix, qkv_bias, out_matrix, out_bias, norm_2, _, up_matrix, up_bias, down_matrix, down_bias] =
        model.layer_tensors();
    let mut weight = |job: &mut Job<D>, numbers: u64, site| -> Result<(), JobError> {
        gradients.push(job.part(Part::Gradients, |job| job.alloc(numbers * element, site))?);
        Ok(())
    };
    let mut linear = |job: &mut Job<D>, matrix: u64, bias: u64| -> Result<(), JobError> {
        weight(job, matrix, sites::WEIGHT_GRADIENT)?;
        weight(job, bias, sites::BIAS_GRADIENT)
    };
    let Saved { norm_1: kept_1, qkv, attention, masks, residual_1, norm_2: kept_2, up, activation, output } = saved;

    job.free(output);
    let wide = job.alloc(wide_bytes, sites::INPUT_GRADIENT)?;
    linear(job, down_matrix, down_bias)?;
    job.free(activation);
    let gelu = job.alloc(wide_bytes, sites::GELU_BACKWARD)?;
    job.free(wide);
    job.free(up);
    let narrow = job.alloc(stream, sites::INPUT_GRADIENT)?;
    linear(job, up_matrix, up_bias)?;
    job.free(gelu);
    let below = job.alloc(stream, sites::NORM_BACKWARD)?;
    linear(job, norm_2, norm_2)?;
    job.free_all(kept_2.into_iter().chain([narrow, flowing, residual_1]));

    let attended = job.alloc(stream, sites::INPUT_GRADIENT)?;
    linear(job, out_matrix, out_bias)?;
    if model.attention == Attention::Plain {
        // The gradient of the scores is as large as they are.
        let bytes = model.batch * model.heads * model.seq * model.seq * element;
        job.touch(bytes, sites::SOFTMAX_BACKWARD)?;
    }
    let split = job.alloc(model.batch * model.seq * model.qkv_width() * element, sites::ATTENTION_BACKWARD)?;
    job.free_all(attention.into_iter().chain([attended, qkv]));
    let narrow = job.alloc(stream, sites::INPUT_GRADIENT)?;
    linear(job, qkv_matrix, qkv_bias)?;
    job.free(split);
    let flowing = job.alloc(stream, sites::NORM_BACKWARD)?;
    linear(job, norm_1, norm_1)?;
    job.free_all(kept_1.into_iter().chain(masks).chain([narrow, below]));
    Ok(flowing)
}
