//! What attention, MLP and output layer share: linear layers with their adapters, and tensors that are kept or not.

use budget::{Linear, Matrix, Model, Part};

use super::gradients::Gradients;
use crate::workloads::job::{Device, Job, JobError, Site, Tensor};
use crate::workloads::sites;

/// Returns the bytes of the residual stream.
pub(super) fn stream_bytes(model: &Model) -> u64 {
    model.batch * model.seq * model.residual_width() * model.precision.element()
}

/// Gathers the tokens that other devices have, if tokens are divided: the matrices of this device process all of them.
pub(super) fn gather_tokens<D: Device>(job: &mut Job<D>, model: &Model) -> Result<(), JobError> {
    if model.share.tokens > 1 {
        let whole = stream_bytes(model) * model.share.tokens;
        job.part(Part::Working, |job| job.touch(whole, sites::EMPTY_OP))?;
    }
    Ok(())
}

/// Runs the adapters of some matrices. What is between their two matrices is kept, the result is added and freed.
pub(super) fn adapt<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    tokens: u64,
    matrices: &[Matrix],
    kept: &mut Vec<Tensor>,
) -> Result<(), JobError> {
    let (Some(lora), element) = (model.lora, model.precision.element()) else { return Ok(()) };
    for outputs in matrices.iter().filter_map(|matrix| model.adapter(*matrix)).map(|[_, b]| b / lora.rank.max(1)) {
        kept.push(job.alloc(tokens * lora.rank * element, sites::LINEAR_OP)?);
        job.part(Part::Working, |job| job.touch(tokens * outputs * element, sites::LINEAR_OP))?;
    }
    Ok(())
}

/// Allocates a tensor that nothing keeps.
pub(super) fn working<D: Device>(job: &mut Job<D>, bytes: u64, site: Site) -> Result<Tensor, JobError> {
    job.part(Part::Working, |job| job.alloc(bytes, site))
}

/// Allocates a tensor that the backward pass needs, or else nothing.
pub(super) fn kept_if<D: Device>(job: &mut Job<D>, is_kept: bool, bytes: u64, site: Site) -> Result<Tensor, JobError> {
    if is_kept { job.alloc(bytes, site) } else { working(job, bytes, site) }
}

/// Allocates the gradients of a linear layer's weights, or of the adapters of its matrices.
pub(super) fn linear_gradients<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    (linear, matrices): (Linear, &[Matrix]),
    gradients: &mut Gradients,
) -> Result<(), JobError> {
    let own: Vec<u64> = match model.lora {
        None => linear.tensors().collect(),
        Some(_) => matrices.iter().filter_map(|matrix| model.adapter(*matrix)).flatten().collect(),
    };
    for (numbers, site) in own.into_iter().zip([sites::WEIGHT_GRADIENT, sites::BIAS_GRADIENT].into_iter().cycle()) {
        gradients.add(job, model, numbers, site)?;
    }
    Ok(())
}
