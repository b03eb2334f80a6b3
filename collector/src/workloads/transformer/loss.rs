//! The output layer and the loss, forward and backward.

use budget::{Model, Part};

use super::gradients::Gradients;
use super::stream_bytes;
use crate::workloads::job::{Device, Job, JobError, Tensor, at};
use crate::workloads::sites;

/// What the loss keeps for the backward pass.
pub(super) struct Loss {
    /// The logits, which the caller of the model holds.
    pub(super) logits: Tensor,
    log_probabilities: Tensor,
    value: Tensor,
}

impl Loss {
    pub(super) fn forward<D: Device>(job: &mut Job<D>, model: &Model) -> Result<Self, JobError> {
        let numbers = model.batch * model.seq * model.vocab;
        let (element, loss) = (model.precision.element(), model.precision.loss());
        job.part(Part::Logits, |job| {
            let logits =
                job.call(at("forward", "model.py", 196), |job| job.alloc(numbers * element, sites::LINEAR_OP))?;
            job.call(at("forward", "model.py", 199), |job| {
                let float = match element == loss {
                    true => None,
                    false => Some(job.alloc(numbers * loss, sites::LOGITS_FLOAT_OP)?),
                };
                let log_probabilities = job.alloc(numbers * loss, sites::LOG_SOFTMAX_OP)?;
                job.free_all(float);
                let value = job.alloc(loss, sites::NLL_LOSS_OP)?;
                Ok(Self { logits, log_probabilities, value })
            })
        })
    }

    /// Returns the gradient of the last norm's output, and adds that of the output layer's weights.
    pub(super) fn backward<D: Device>(
        self,
        job: &mut Job<D>,
        model: &Model,
        gradients: &mut Gradients,
    ) -> Result<Tensor, JobError> {
        let numbers = model.batch * model.seq * model.vocab;
        let (element, loss) = (model.precision.element(), model.precision.loss());
        let mut gradient = job.part(Part::Logits, |job| job.alloc(numbers * loss, sites::LOSS_BACKWARD))?;
        job.free(self.log_probabilities);
        job.free(self.value);
        if element != loss {
            let half = job.part(Part::Logits, |job| job.alloc(numbers * element, sites::CAST_BACKWARD))?;
            job.free(gradient);
            gradient = half;
        }
        let flowing = job.alloc(stream_bytes(model), sites::INPUT_GRADIENT)?;
        gradients.add(job, model, model.vocab * model.hidden, sites::WEIGHT_GRADIENT)?;
        job.free(gradient);
        Ok(flowing)
    }
}
