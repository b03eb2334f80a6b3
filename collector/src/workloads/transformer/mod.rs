//! A transformer as a program: its weights on the device, forward pass, backward pass and optimizer step.
//!
//! Every tensor of a step has the size that the [`Model`] implies, and is freed when PyTorch would free it.

mod gradients;
mod layer;
mod linear;
mod loss;
mod mlp;

use std::collections::VecDeque;

use budget::{Checkpointing, Model, Norm, Optimizer, Part};

use self::gradients::Gradients;
use self::layer::{Saved, backward_layer, forward_layer, norm_site};
use self::linear::stream_bytes;
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
    /// What gradients are exchanged through with other devices.
    buckets: Vec<Tensor>,
    gradients: Gradients,
}

/// Bytes of a bucket of gradients (`bucket_cap_mb`).
const BUCKET: u64 = 25 << 20;
/// The most batches beyond those in flight that a step runs: all further ones are alike.
const FURTHER_BATCHES: u64 = 2;

/// What the forward pass keeps for the backward pass.
pub(super) struct Kept {
    /// The inputs of all segments, or of the first layer only; the last is the output of all layers.
    streams: Vec<Tensor>,
    masks: Vec<Tensor>,
    layers: Vec<Saved>,
    /// The last norm's output, and the loss, on the device that has the output layer.
    norm: Option<Tensor>,
    loss: Option<Loss>,
    /// Weights of other devices that are outside of the layers.
    gathered: Option<Tensor>,
}

impl Net {
    /// Moves a model's weights to the device.
    pub(super) fn load<D: Device>(job: &mut Job<D>, model: &Model) -> Result<Self, JobError> {
        let mut net = Self {
            model: *model,
            weights: Vec::new(),
            masters: Vec::new(),
            states: Vec::new(),
            buckets: Vec::new(),
            gradients: Gradients::default(),
        };
        job.call(at("build", "train.py", 58), |job| {
            let (weights, adapters) = model.stored_tensors();
            for (part, tensors) in [(Part::Weights, weights), (Part::Adapters, adapters)] {
                job.part(part, |job| net.add_weights(job, tensors))?;
            }
            let master = model.master_element();
            if master > 0 {
                job.part(Part::MasterWeights, |job| {
                    net.each_trained(job, master, sites::CLONE_OP, |net| &mut net.masters)
                })?;
            }
            let is_exchanged = model.parallel.data > 1 && model.parallel.zero == 0;
            if is_exchanged && model.optimizer != Optimizer::Inference {
                let mut left: u64 = model.trained_tensors(false).iter().sum::<u64>() * model.trained_element();
                while left > 0 {
                    let bytes = left.min(BUCKET);
                    net.buckets.push(job.part(Part::GradientBuckets, |job| job.alloc(bytes, sites::EMPTY_OP))?);
                    left -= bytes;
                }
            }
            Ok(net)
        })
    }

    /// Allocates tensors of weights of these bytes.
    fn add_weights<D: Device>(&mut self, job: &mut Job<D>, tensors: Vec<u64>) -> Result<(), JobError> {
        for bytes in tensors {
            self.weights.push(job.alloc(bytes, sites::PARAMETER_OP)?);
        }
        Ok(())
    }

    /// Allocates one tensor for each tensor that is trained, or for the part of it that this device updates.
    fn each_trained<D: Device>(
        &mut self,
        job: &mut Job<D>,
        bytes: u64,
        site: Site,
        list: impl Fn(&mut Self) -> &mut Vec<Tensor>,
    ) -> Result<(), JobError> {
        for numbers in self.model.trained_tensors(self.model.parallel.zero >= 1) {
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
        let numbers: Vec<u64> = self.model.tensors().collect();
        bytes.into_iter().flat_map(move |(count, bytes)| {
            let numbers = numbers.clone();
            (0..count).filter_map(move |i| numbers.get(i % numbers.len().max(1)).map(|n| n * bytes))
        })
    }

    /// Runs the batches of a step forward and backward: as many forward as are in flight, then one backward and one
    /// forward in turn. The caller holds the logits until the end of a batch.
    pub(super) fn train_step<D: Device>(&mut self, job: &mut Job<D>) -> Result<(), JobError> {
        let in_flight = self.model.share.in_flight;
        let batches = self.model.parallel.micro_batches.min(in_flight + FURTHER_BATCHES);
        job.call(at("train_step", "train.py", 96), |job| {
            let mut flying = VecDeque::new();
            for batch in 0..batches {
                let kept =
                    job.span("forward", |job| job.call(at("forward", "model.py", 203), |job| self.forward(job)))?;
                flying.push_back(kept);
                if batch + 1 >= in_flight
                    && let Some(kept) = flying.pop_front()
                {
                    self.finish_batch(job, kept)?;
                }
            }
            while let Some(kept) = flying.pop_front() {
                self.finish_batch(job, kept)?;
            }
            // The loss is printed, so the program waits for the device.
            let printing = 3_000 + job.random_below(2_000) as i64;
            job.wait(printing);
            Ok(())
        })
    }

    fn finish_batch<D: Device>(&mut self, job: &mut Job<D>, kept: Kept) -> Result<(), JobError> {
        let logits = kept.loss.as_ref().map(|loss| loss.logits);
        job.span("backward", |job| job.in_engine(|job| self.backward(job, kept)))?;
        job.free_all(logits);
        self.gradients.keep();
        Ok(())
    }

    /// Gathers weights of a layer that other devices have, if there are any.
    fn gather<D: Device>(&self, job: &mut Job<D>, which: usize) -> Result<Option<Tensor>, JobError> {
        let bytes = self.model.gathered().and_then(|pieces| pieces.get(which).copied()).filter(|bytes| *bytes > 0);
        bytes.map(|bytes| job.part(Part::GatheredWeights, |job| job.alloc(bytes, sites::EMPTY_OP))).transpose()
    }

    fn forward<D: Device>(&self, job: &mut Job<D>) -> Result<Kept, JobError> {
        let model = &self.model;
        let stream = stream_bytes(model);
        // A byte for each number.
        let mask = stream / model.precision.element();
        let gathered = self.gather(job, ENDS)?;
        let (segment, saves) = match model.checkpointing {
            Checkpointing::None => (model.layers, true),
            Checkpointing::Every(layers) => (layers.max(1), false),
        };
        job.part(Part::Activations, |job| {
            let mut kept = (Vec::new(), Vec::new(), Vec::new());
            let (streams, masks, layers) = (&mut kept.0, &mut kept.1, &mut kept.2);
            streams.push(job.call(at("forward", "model.py", 188), |job| job.alloc(stream, sites::EMBEDDING_OP))?);
            if model.dropout && model.share.has_embedding {
                masks.push(job.call(at("forward", "model.py", 189), |job| job.alloc(mask, sites::DROPOUT_OP))?);
            }
            for number in 0..model.layers {
                let others = self.gather(job, LAYER)?;
                let saved = job.call(at("forward", "model.py", 192), |job| forward_layer(job, model))?;
                job.free_all(others);
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
            let (mut norm, mut loss) = (None, None);
            if model.share.has_head {
                let site = if model.norm == Norm::Rms { sites::RMS_NORM_OP } else { sites::LAYER_NORM_OP };
                let output = job.call(at("forward", "model.py", 194), |job| job.alloc(stream, site))?;
                loss = Some(Loss::forward(job, model)?);
                // A frozen output layer needs no input for its gradient.
                match model.lora {
                    None => norm = Some(output),
                    Some(_) => job.free(output),
                }
            }
            let (streams, masks, layers) = kept;
            Ok(Kept { streams, masks, layers, norm, loss, gathered })
        })
    }

    fn backward<D: Device>(&mut self, job: &mut Job<D>, kept: Kept) -> Result<(), JobError> {
        let model = self.model;
        let Kept { mut streams, masks, mut layers, norm, loss, gathered } = kept;
        let mut flowing = match loss {
            Some(loss) => {
                let flowing = loss.backward(job, &model, &mut self.gradients)?;
                job.free_all(norm);
                let flowing = self.norm_backward(job, flowing)?;
                self.gradients.reduce(job);
                flowing
            }
            // Another stage sends the gradient.
            None => job.alloc(stream_bytes(&model), sites::EMPTY_OP)?,
        };
        match model.checkpointing {
            Checkpointing::None => {
                while let Some(saved) = layers.pop() {
                    let others = self.gather(job, LAYER)?;
                    flowing = backward_layer(job, &model, saved, flowing, &mut self.gradients)?;
                    job.free_all(others);
                    self.gradients.reduce(job);
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
                    let again = self.recompute(job, length)?;
                    for saved in again.into_iter().rev() {
                        let others = self.gather(job, LAYER)?;
                        flowing = backward_layer(job, &model, saved, flowing, &mut self.gradients)?;
                        job.free_all(others);
                        self.gradients.reduce(job);
                    }
                    if let Some(input) = streams.pop() {
                        job.free(input);
                    }
                }
            }
        }
        let Model { vocab, positions, hidden, .. } = model;
        let is_trained = model.share.has_embedding && model.lora.is_none();
        if is_trained && positions > 0 {
            self.gradients.add(job, &model, positions * hidden, sites::EMBEDDING_BACKWARD)?;
        }
        // The gradient of the output layer is there already if both layers share one matrix.
        let is_added = model.is_tied && model.share.has_head;
        let table = vocab * hidden * model.precision.element();
        let mut dense = None;
        if is_trained && is_added {
            dense = Some(job.part(Part::Working, |job| job.alloc(table, sites::EMBEDDING_BACKWARD))?);
        } else if is_trained {
            self.gradients.add(job, &model, vocab * hidden, sites::EMBEDDING_BACKWARD)?;
        }
        job.free(flowing);
        job.free_all(streams.into_iter().chain(masks));
        job.free_all(dense.into_iter().chain(gathered));
        self.gradients.reduce(job);
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

    fn norm_backward<D: Device>(&mut self, job: &mut Job<D>, flowing: Tensor) -> Result<Tensor, JobError> {
        let model = &{ self.model };
        let site = norm_site(model);
        let below = job.alloc(stream_bytes(model), site)?;
        if model.lora.is_none() {
            let numbers = model.norm_tensors().sum::<u64>();
            self.gradients.add(job, model, numbers, site)?;
        }
        job.free(flowing);
        Ok(below)
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
            for numbers in model.trained_tensors(model.parallel.zero >= 1) {
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
        let Self { weights, masters, states, buckets, mut gradients, .. } = self;
        job.free_all(weights.into_iter().chain(masters).chain(states).chain(buckets).chain(gradients.take()));
    }
}

/// Which gathered weights are meant: those outside of the layers, or those of a layer.
const ENDS: usize = 0;
const LAYER: usize = 1;
