//! The gradients of a model's weights.

use budget::{Model, Part};

use crate::workloads::job::{Device, Job, JobError, Site, Tensor};

/// The gradients that are kept until the optimizer's step.
#[derive(Debug, Default)]
pub(super) struct Gradients {
    kept: Vec<Tensor>,
    /// Whether there are gradients of an earlier batch, which new ones are added to.
    is_adding: bool,
    /// Gradients of which other devices have not got their parts yet.
    whole: Vec<Tensor>,
    /// Whether the next ones are those of experts.
    pub(super) is_expert: bool,
}

impl Gradients {
    /// Allocates the gradient of a tensor. If gradients are divided among devices, only a part of it is kept; if there is
    /// one already, nothing is.
    pub(super) fn add<D: Device>(
        &mut self,
        job: &mut Job<D>,
        model: &Model,
        numbers: u64,
        site: Site,
    ) -> Result<(), JobError> {
        let (element, is_divided) = (model.trained_element(), model.parallel.zero >= 2);
        let bytes = numbers * element;
        if !is_divided && !self.is_adding {
            self.kept.push(job.part(Part::Gradients, |job| job.alloc(bytes, site))?);
            return Ok(());
        }
        let whole =
            job.part(if is_divided { Part::LayerGradients } else { Part::Working }, |job| job.alloc(bytes, site))?;
        if !self.is_adding {
            let part = model.part_of(numbers, self.is_expert, true) * element;
            self.kept.push(job.part(Part::Gradients, |job| job.alloc(part, site))?);
        }
        self.whole.push(whole);
        if !is_divided {
            self.reduce(job);
        }
        Ok(())
    }

    /// Ends a layer: each device keeps its part of the layer's gradients.
    pub(super) fn reduce<D: Device>(&mut self, job: &mut Job<D>) {
        job.free_all(std::mem::take(&mut self.whole));
    }

    /// Adds the gradients of the next batches to those that there are.
    pub(super) fn keep(&mut self) {
        self.is_adding = true;
    }

    /// Removes and returns all gradients.
    pub(super) fn take(&mut self) -> Vec<Tensor> {
        self.is_adding = false;
        self.whole.clear();
        std::mem::take(&mut self.kept)
    }
}
