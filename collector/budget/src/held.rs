//! The weights, gradients and optimizer state that a device holds, and which of them are divided among data-parallel
//! devices.

use super::method::{Implementation, Optimizer};
use super::model::Model;
use super::part::Part;
use super::plan::Parts;
use super::weights::{Linear, Piece};

const ZERO: &str = "Rajbhandari et al. 2020, ZeRO, section 3.1";
const ZERO_STAGES: &str = "Rajbhandari et al. 2020, ZeRO, section 5";
const LORA: &str = "Hu et al. 2021, LoRA, section 4.1";
const FOREACH: &str = "torch.optim.adam._multi_tensor_adam: _foreach_sqrt makes a tensor for each weight";
const BUCKETS: &str = "torch.nn.parallel.DistributedDataParallel: gradient_as_bucket_view=False keeps both";
const CAST: &str = "torch.autocast: weights are cast once a step, and kept for the backward pass";
const GATHERED: &str = "Zhao et al. 2023, PyTorch FSDP, section 3.2; without prefetching the next layer";

/// Numbers of weights, separated by how many devices have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Weights that all data-parallel devices have.
    pub dense: u128,
    /// Weights of experts, which are divided among some of them.
    pub experts: u128,
}

impl Numbers {
    /// Returns all of them.
    pub fn all(self) -> u128 {
        self.dense.saturating_add(self.experts)
    }
}

impl Model {
    /// Returns the weights of the share.
    pub(super) fn held_weights(&self) -> Numbers {
        let all = u128::from(self.weights());
        let count = self.experts.filter(|_| self.params.is_none()).map_or(0, |experts| experts.count);
        let experts = u128::from(self.expert_weights()) * u128::from(count) * u128::from(self.expert_layers());
        Numbers { dense: all.saturating_sub(experts), experts }
    }

    /// Returns the numbers that are trained: the weights, or the adapters.
    pub fn trained(&self) -> Numbers {
        if self.lora.is_none() {
            return self.held_weights();
        }
        let (layers, one) = (u128::from(self.layers), |sum: super::Sum| sum.value(self));
        let dense = layers * one(self.adapter_sum(false));
        Numbers { dense, experts: layers * one(self.adapter_sum(true)) - dense }
    }

    /// Returns the bytes of a number that is trained, and of its gradient: adapters of 16-bit weights have 32 bits in mixed
    /// precision.
    pub fn trained_element(&self) -> u64 {
        match self.lora {
            // PEFT's adapters have 32 bits, whatever the weights have (`autocast_adapter_dtype`).
            Some(_) if self.implementation == Implementation::Transformers => 4,
            Some(_) => self.precision.state(),
            None => self.precision.weight(),
        }
    }

    /// Returns the bytes of the copy of a trained number that the optimizer changes; 0 if it changes the number itself.
    pub fn master_element(&self) -> u64 {
        if self.lora.is_some() || self.optimizer == Optimizer::Inference { 0 } else { self.precision.master() }
    }

    /// Returns the bytes of the share's weights, as they are stored.
    fn stored(&self) -> Numbers {
        let element = u128::from(self.precision.weight());
        let Numbers { dense, experts } = self.held_weights();
        let plain = Numbers { dense: dense * element, experts: experts * element };
        if self.quantization.is_none() {
            return plain;
        }
        let (outside, inside) = self.layer_linears();
        let saved = |linears: &[Linear], times: u64| {
            let of = |linear: &Linear| {
                let stored: u64 = self.linear_bytes(*linear).iter().sum();
                (linear.tensors().map(u128::from).sum::<u128>() * element, u128::from(stored))
            };
            let (plain, stored) = linears.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            (plain * u128::from(times), stored * u128::from(times))
        };
        let (own, experts) = match self.experts {
            None => (1, 0),
            Some(experts) => (experts.shared, experts.count),
        };
        let (layers, all) = (self.expert_layers(), self.layers);
        let dense = self.dense().map(|(dense, count)| saved(&dense.mlp_linears(), count)).unwrap_or_default();
        let change = |before: u128, list: &[(u128, u128)]| {
            list.iter().fold(before, |sum, (plain, stored)| sum.saturating_sub(*plain).saturating_add(*stored))
        };
        Numbers {
            dense: change(plain.dense, &[saved(&outside, all), saved(&inside, own * layers), dense]),
            experts: change(plain.experts, &[saved(&inside, experts * layers)]),
        }
    }

    /// Returns the bytes of each tensor of weights, in order.
    #[cfg(test)]
    pub(super) fn stored_tensors(&self) -> Vec<u64> {
        let e = self.precision.weight();
        self.tensors_as(|piece| match piece {
            Piece::Numbers(numbers) => vec![numbers * e],
            Piece::Linear(linear) => self.linear_bytes(linear),
        })
    }

    /// Returns the numbers of each tensor of adapters, in order.
    #[cfg(test)]
    pub(super) fn adapter_tensors(&self) -> Vec<u64> {
        let (outside, inside) = self.layer_adapters();
        let layer: Vec<u64> = outside.into_iter().chain(self.of_mlps(&inside)).collect();
        (0..self.layers).flat_map(|_| layer.iter().copied()).collect()
    }

    /// Returns all tensors of weights in order, as a function turns them into tensors.
    pub(super) fn tensors_as(&self, tensors: impl Fn(Piece) -> Vec<u64>) -> Vec<u64> {
        let plain = |numbers: u64| tensors(Piece::Numbers(numbers));
        let layer = |model: &Self| -> Vec<u64> {
            let inside = model.mlp_linears().into_iter().map(Piece::Linear).flat_map(&tensors);
            let inside: Vec<u64> = inside.collect();
            model.layer_pieces().into_iter().flat_map(&tensors).chain(model.of_mlps(&inside)).collect()
        };
        let mut all: Vec<u64> = self.first_tensors().flat_map(plain).collect();
        if let Some((dense, count)) = self.dense() {
            let layer = layer(&dense);
            all.extend((0..count).flat_map(|_| layer.iter().copied()));
        }
        let layer = layer(self);
        all.extend((0..self.expert_layers()).flat_map(|_| layer.iter().copied()));
        all.extend(self.last_tensors().flat_map(plain));
        all
    }

    /// Returns the tensors of all MLPs of a layer.
    fn of_mlps(&self, one: &[u64]) -> Vec<u64> {
        (0..self.mlps()).flat_map(|_| one.iter().copied()).collect()
    }

    /// Returns the bytes of the weights that a device gathers from others, if weights are divided among data-parallel
    /// devices: those outside of the layers, for the whole step, and those of a layer while it is computed.
    fn gathered(&self) -> Option<[u64; 2]> {
        (self.parallel.zero >= 3).then(|| {
            let (stored, trained) = (self.stored(), self.trained());
            let layers = u128::from(self.layers.max(1));
            let ends = match self.params {
                Some(_) => 0,
                None => self.ends_and_layer().0 * u128::from(self.precision.weight()),
            };
            let mut layer = stored.dense.saturating_sub(ends) / layers;
            // Experts that one device has alone are there already.
            if self.parallel.expert_data() > 1 {
                layer += stored.experts / layers;
            }
            if self.lora.is_some() {
                layer += u128::from(self.trained_element()) * trained.all() / layers;
            }
            [super::plan::clamped(ends), super::plan::clamped(layer)]
        })
    }

    /// Returns the bytes of the matrices' copies that `torch.autocast` makes: those of all layers, and that of the output layer.
    /// The gradient of an input needs the copy of a frozen weight too.
    fn cast(&self) -> [u128; 2] {
        let matrices = |linears: Vec<Linear>| linears.iter().map(|linear| u128::from(linear.matrix)).sum::<u128>();
        let of_layer = |model: &Self| {
            let (outside, inside) = model.layer_linears();
            matrices(outside) + u128::from(model.mlps()) * matrices(inside)
        };
        let dense = self.dense().map_or(0, |(dense, count)| u128::from(count) * of_layer(&dense));
        // Quantised matrices are no weights that autocast knows.
        let layers = match self.quantization {
            Some(_) => 0,
            None => u128::from(self.expert_layers()) * of_layer(self) + dense,
        };
        let head = if self.share.has_head { u128::from(self.vocab) * u128::from(self.hidden) } else { 0 };
        // Without gradients nothing is kept.
        let bytes = if self.optimizer == Optimizer::Inference { 0 } else { u128::from(self.precision.cast()) };
        [bytes * layers, bytes * head]
    }

    /// Returns numbers as they are divided among data-parallel devices.
    fn divided(&self, numbers: Numbers) -> u128 {
        let Numbers { dense, experts } = numbers;
        dense.div_ceil(u128::from(self.parallel.data.max(1)))
            + experts.div_ceil(u128::from(self.parallel.expert_data()))
    }
}

/// The memory of weights and what belongs to them, at the moments of a step.
pub(super) struct Held {
    /// Weights, adapters, master weights, the optimizer's state and buckets.
    pub(super) always: u128,
    /// Gradients that are kept for the optimizer's step.
    pub(super) gradients: u128,
    /// Weights of other devices, while they are computed with.
    pub(super) gathered: u128,
    /// Gradients that are not yet divided.
    pub(super) unreduced: u128,
    /// Temporary memory of the optimizer's step.
    pub(super) step: u128,
    /// 16-bit copies of the matrices of all layers, and of the output layer.
    pub(super) cast: [u128; 2],
}

impl Held {
    /// Adds the parts of a share.
    pub(super) fn of(model: &Model, parts: &mut Parts) -> Self {
        let zero = model.parallel.zero;
        let (weights, trained, stored) = (model.held_weights(), model.trained(), model.stored());
        let trains = model.optimizer != Optimizer::Inference;
        let e = model.precision.weight();
        let all = if model.parallel.divides_weights() { "W" } else { "P" };
        let t = if model.lora.is_some() { "T" } else { all };
        let source = if zero > 0 { ZERO_STAGES } else { ZERO };
        // The bytes of a trained number, and its formula.
        let of_trained = |bytes: u64, is_divided: bool| {
            let bytes = u128::from(bytes);
            let factor = if bytes == 1 { String::new() } else { bytes.to_string() };
            match is_divided {
                false => (bytes * trained.all(), format!("{factor}{t}")),
                true => (bytes * model.divided(trained), format!("{factor}{}", quotient(model, t, trained))),
            }
        };

        let is_divided = zero >= 3;
        let formula = match model.quantization {
            None if is_divided => format!("{e}{}", quotient(model, all, weights)),
            None => format!("{e}{all}"),
            Some(quantization) => {
                let formula = format!("{e} ({all} - Q) + {}", quantization.formula());
                if is_divided { format!("({formula})/{}", model.parallel.data) } else { formula }
            }
        };
        let bytes = if is_divided { model.divided(stored) } else { stored.all() };
        let weight_source = model.quantization.map_or(source, |quantization| quantization.source());
        let mut always = parts.add(Part::Weights, bytes, formula, weight_source);
        if model.lora.is_some() {
            let (bytes, formula) = of_trained(model.trained_element(), is_divided);
            always += parts.add(Part::Adapters, bytes, formula, LORA);
        }
        let (bytes, formula) = of_trained(model.master_element(), zero >= 1);
        always += parts.add(Part::MasterWeights, bytes, formula, source);
        let (bytes, formula) = of_trained(if trains { model.trained_element() } else { 0 }, zero >= 2);
        let gradients = parts.add(Part::Gradients, bytes, formula, source);
        let states = model.optimizer.states();
        let (bytes, formula) = of_trained(model.precision.state(), zero >= 1);
        always += parts.add(Part::OptimizerState, u128::from(states) * bytes, format!("{states} × {formula}"), source);
        if trains && model.parallel.data > 1 && zero == 0 {
            let (bytes, formula) = of_trained(model.trained_element(), false);
            always += parts.add(Part::GradientBuckets, bytes, formula, BUCKETS);
        }
        // The square roots of Adam's second moments; other optimizers work in place.
        let roots = if model.optimizer == Optimizer::Adam { model.precision.state() } else { 0 };
        let (bytes, formula) = of_trained(roots, zero >= 1);
        let step = parts.add(Part::OptimizerStep, bytes, formula, FOREACH);

        let cast = model.cast();
        parts.add(Part::CastWeights, cast.into_iter().sum(), "2 × matrices".to_owned(), CAST);

        let (mut gathered, mut unreduced) = (0, 0);
        let layers = u128::from(model.layers.max(1));
        if let Some(pieces) = model.gathered() {
            gathered = pieces.into_iter().map(u128::from).sum();
            parts.add(
                Part::GatheredWeights,
                gathered,
                "one layer, and what is outside of the layers".to_owned(),
                GATHERED,
            );
        }
        if zero >= 2 && trains {
            let is_apart = model.lora.is_none() && model.params.is_none();
            let ends = if is_apart { model.ends_and_layer().0 } else { 0 };
            let bytes = u128::from(model.trained_element());
            unreduced = bytes * (trained.all().saturating_sub(ends) / layers);
            let head =
                if is_apart && model.share.has_head { u128::from(model.vocab) * u128::from(model.hidden) } else { 0 };
            let (most, formula) = match bytes * head > unreduced {
                true => (bytes * head, format!("{bytes}vh: the output layer")),
                false => (unreduced, "one layer".to_owned()),
            };
            parts.add(Part::LayerGradients, most, formula, GATHERED);
        }
        Self { always, gradients, gathered, unreduced, step, cast }
    }
}

/// Returns the formula of numbers as they are divided among data-parallel devices.
fn quotient(model: &Model, letter: &str, numbers: Numbers) -> String {
    let (data, expert) = (model.parallel.data, model.parallel.expert_data());
    match numbers.experts == 0 || data == expert {
        true => format!("{letter}/{data}"),
        false if expert == 1 => format!(" (({letter} - X)/{data} + X)"),
        false => format!(" (({letter} - X)/{data} + X/{expert})"),
    }
}
