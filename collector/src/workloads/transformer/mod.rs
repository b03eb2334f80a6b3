//! A transformer as a program: its weights on the device, forward pass, backward pass and optimizer step.
//!
//! Every tensor of a step has the size that the [`Model`] implies, and is freed when PyTorch would free it.

mod gradients;
mod layer;
mod loss;

use budget::{Checkpointing, Model, Optimizer, Part};

use self::gradients::Gradients;
use self::layer::{Saved, backward_layer, forward_layer};
use self::loss::Loss;
use super::job::{Device, Job, JobError, Site, Tensor, at};
use super::sites;

/// A model on a device.
#[derive(Debug)]
pub(super) struct Net {
    pub(super) model: Model,
    weights: Vec<Tensor>,
    masters: Vec<Tensor>,
    /// The optimizer's state, after its first step.
    states: Vec<Tensor>,
    gradients: Gradients,
}

/// What the forward pass keeps for the backward pass.
pub(super) struct Kept {
    /// The inputs of all segments, or of the first layer only; the last is the output of all layers.
    streams: Vec<Tensor>,
    masks: Vec<Tensor>,
    layers: Vec<Saved>,
    /// The last norm's output.
    norm: Tensor,
    loss: Loss,
}

impl Net {
    /// Moves a model's weights to the device.
    pub(super) fn load<D: Device>(job: &mut Job<D>, model: &Model) -> Result<Self, JobError> {
        let mut net = Self {
            model: *model,
            weights: Vec::new(),
            masters: Vec::new(),
            states: Vec::new(),
            gradients: Gradients::default(),
        };
        job.call(at("build", "train.py", 58), |job| {
            let element = model.precision.element();
            job.part(Part::Weights, |job| {
                for numbers in model.tensors() {
                    net.weights.push(job.alloc(numbers * element, sites::PARAMETER_OP)?);
                }
                Ok::<_, JobError>(())
            })?;
            let master = model.master_element();
            if master > 0 {
                job.part(Part::MasterWeights, |job| {
                    net.each_trained(job, master, sites::CLONE_OP, |net| &mut net.masters)
                })?;
            }
            Ok(net)
        })
    }

    /// Allocates one tensor for each tensor of weights.
    fn each_trained<D: Device>(
        &mut self,
        job: &mut Job<D>,
        bytes: u64,
        site: Site,
        list: impl Fn(&mut Self) -> &mut Vec<Tensor>,
    ) -> Result<(), JobError> {
        for numbers in self.model.tensors() {
            let made = job.alloc(numbers * bytes, site)?;
            list(self).push(made);
        }
        Ok(())
    }

    /// Returns the weights with master copies and optimizer state: the content of a checkpoint.
    pub(super) fn state(&self) -> impl Iterator<Item = u64> + '_ {
        let bytes = [
            (self.weights.len(), self.model.precision.element()),
            (self.masters.len(), self.model.precision.master()),
            (self.states.len(), self.model.precision.state()),
        ];
        let numbers: Vec<u64> = self.model.tensors();
        bytes.into_iter().flat_map(move |(count, bytes)| {
            let numbers = numbers.clone();
            (0..count).filter_map(move |i| numbers.get(i % numbers.len().max(1)).map(|n| n * bytes))
        })
    }

    /// Runs a batch forward and backward. The caller holds the logits until the end.
    pub(super) fn train_step<D: Device>(&mut self, job: &mut Job<D>) -> Result<(), JobError> {
        job.call(at("train_step", "train.py", 96), |job| {
            let kept = job.span("forward", |job| job.call(at("forward", "model.py", 203), |job| self.forward(job)))?;
            let logits = kept.loss.logits;
            job.span("backward", |job| job.in_engine(|job| self.backward(job, kept)))?;
            job.free(logits);
            self.gradients.keep();
            // The loss is printed, so the program waits for the device.
            let printing = 3_000 + job.random_below(2_000) as i64;
            job.wait(printing);
            Ok(())
        })
    }

    fn forward<D: Device>(&self, job: &mut Job<D>) -> Result<Kept, JobError> {
        let model = &self.model;
        let stream = stream_bytes(model);
        // A byte for each number.
        let mask = stream / model.precision.element();
        let (segment, saves) = match model.checkpointing {
            Checkpointing::None => (model.layers, true),
            Checkpointing::Every(layers) => (layers.max(1), false),
        };
        job.part(Part::Activations, |job| {
            let (mut streams, mut masks, mut layers) = (Vec::new(), Vec::new(), Vec::new());
            streams.push(job.call(at("forward", "model.py", 188), |job| job.alloc(stream, sites::EMBEDDING_OP))?);
            if model.dropout {
                masks.push(job.call(at("forward", "model.py", 189), |job| job.alloc(mask, sites::DROPOUT_OP))?);
            }
            for number in 0..model.layers {
                let saved = job.call(at("forward", "model.py", 192), |job| forward_layer(job, model))?;
                if saves {
                    layers.push(saved);
                } else {
                    // The tensors within a segment are freed, and so is the stream between its layers.
                    let out = saved.drop_all_but_output(job);
                    if number % segment > 0
                        && let Some(between) = streams.pop()
                    {
                        job.free(between);
                    }
                    streams.push(out);
                }
            }
            let norm = job.call(at("forward", "model.py", 194), |job| job.alloc(stream, sites::LAYER_NORM_OP))?;
            let loss = Loss::forward(job, model)?;
            Ok(Kept { streams, masks, layers, norm, loss })
        })
    }

    fn backward<D: Device>(&mut self, job: &mut Job<D>, kept: Kept) -> Result<(), JobError> {
        let model = self.model;
        let Kept { mut streams, masks, mut layers, norm, loss } = kept;
        let flowing = loss.backward(job, &model, &mut self.gradients)?;
        job.free(norm);
        let below = job.alloc(stream_bytes(&model), sites::NORM_BACKWARD)?;
        self.gradients.add(job, &model, 2 * model.hidden, sites::NORM_BACKWARD)?;
        job.free(flowing);
        let mut flowing = below;
        match model.checkpointing {
            Checkpointing::None => {
                while let Some(saved) = layers.pop() {
                    flowing = backward_layer(job, &model, saved, flowing, &mut self.gradients)?;
                }
            }
            Checkpointing::Every(every) => {
                if let Some(output) = streams.pop() {
                    job.free(output);
                }
                let every = every.max(1);
                let whole = model.layers / every;
                let rest = model.layers % every;
                for length in std::iter::once(rest).filter(|rest| *rest > 0).chain((0..whole).map(|_| every)) {
                    for saved in self.recompute(job, length)?.into_iter().rev() {
                        flowing = backward_layer(job, &model, saved, flowing, &mut self.gradients)?;
                    }
                    if let Some(input) = streams.pop() {
                        job.free(input);
                    }
                }
            }
        }
        // The gradient of the output layer, which is the embedding, is there already.
        let table = model.vocab * model.hidden * model.precision.element();
        let dense = job.part(Part::Working, |job| job.alloc(table, sites::EMBEDDING_BACKWARD))?;
        job.free(flowing);
        job.free_all(streams.into_iter().chain(masks));
        job.free(dense);
        Ok(())
    }

    /// Recomputes the activations of a segment.
    fn recompute<D: Device>(&self, job: &mut Job<D>, layers: u64) -> Result<Vec<Saved>, JobError> {
        let [checkpoint, function] = sites::RECOMPUTE else { return Ok(Vec::new()) };
        job.call(*function, |job| {
            job.call(*checkpoint, |job| {
                job.part(Part::Activations, |job| {
                    let again = (0..layers)
                        .map(|_| job.call(at("forward", "model.py", 192), |job| forward_layer(job, &self.model)));
                    again.collect()
                })
            })
        })
    }

    /// Runs the optimizer's step. The first one allocates its state. Gradients are freed afterwards, as `zero_grad()`
    /// does.
    pub(super) fn update<D: Device>(&mut self, job: &mut Job<D>) -> Result<(), JobError> {
        job.span("optimizer", |job| job.call(at("train", "train.py", 121), |job| self.change_weights(job)))
    }

    fn change_weights<D: Device>(&mut self, job: &mut Job<D>) -> Result<(), JobError> {
        let (model, state) = (self.model, self.model.precision.state());
        if self.states.is_empty() {
            let site = if model.optimizer.states() > 1 { sites::MOMENTUM_OP } else { sites::SGD_STATE_OP };
            for _ in 0..model.optimizer.states() {
                job.part(Part::OptimizerState, |job| self.each_trained(job, state, site, |net| &mut net.states))?;
            }
        }
        if model.optimizer == Optimizer::Adam {
            let mut roots = Vec::new();
            for numbers in model.tensors() {
                roots.push(job.part(Part::OptimizerStep, |job| job.alloc(numbers * state, sites::DENOMINATOR_OP))?);
            }
            job.wait(31_000);
            job.free_all(roots);
        }
        let gradients = self.gradients.take();
        job.free_all(gradients);
        Ok(())
    }

    /// Forgets the handles of gradients that were freed.
    pub(super) fn forget_gradients(&mut self) {
        self.gradients.take();
    }

    /// Frees the model.
    pub(super) fn unload<D: Device>(self, job: &mut Job<D>) {
        let Self { weights, masters, states, mut gradients, .. } = self;
        job.free_all(weights.into_iter().chain(masters).chain(states).chain(gradients.take()));
    }
}

/// Returns the bytes of the residual stream.
fn stream_bytes(model: &Model) -> u64 {
    model.batch * model.seq * model.hidden * model.precision.element()
}
