//! The gradients of a model's weights.

use budget::{Linear, Model, Part};

use crate::workloads::job::{Device, Job, JobError, Site, Tensor};
use crate::workloads::sites;

/// The gradients that are kept until the optimizer's step.
#[derive(Debug, Default)]
pub(super) struct Gradients {
    kept: Vec<Tensor>,
    /// Whether there are gradients of an earlier batch, which new ones are added to.
    is_adding: bool,
}

impl Gradients {
    /// Allocates the gradient of a tensor, which is kept unless there is one already.
    pub(super) fn add<D: Device>(
        &mut self,
        job: &mut Job<D>,
        model: &Model,
        numbers: u64,
        site: Site,
    ) -> Result<(), JobError> {
        let bytes = numbers * model.trained_element();
        match self.is_adding {
            true => job.part(Part::Working, |job| job.touch(bytes, site))?,
            false => self.kept.push(job.part(Part::Gradients, |job| job.alloc(bytes, site))?),
        }
        Ok(())
    }

    /// Allocates the gradients of a linear layer's weights.
    pub(super) fn add_linear<D: Device>(
        &mut self,
        job: &mut Job<D>,
        model: &Model,
        linear: Linear,
    ) -> Result<(), JobError> {
        for (numbers, site) in linear.tensors().zip([sites::WEIGHT_GRADIENT, sites::BIAS_GRADIENT]) {
            self.add(job, model, numbers, site)?;
        }
        Ok(())
    }

    /// Adds the gradients of the next batches to those that there are.
    pub(super) fn keep(&mut self) {
        self.is_adding = true;
    }

    /// Removes and returns all gradients.
    pub(super) fn take(&mut self) -> Vec<Tensor> {
        self.is_adding = false;
        std::mem::take(&mut self.kept)
    }
}
