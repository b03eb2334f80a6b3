//! The plan: the bytes of each part and at each moment of a step.

use serde::Serialize;

use super::activations::{
    cached, cached_bytes, embedding_activations, ends, layer_activations, logits, scores, segment_inputs, stream,
    token_activations, token_working,
};
use super::held::Held;
use super::method::{Attention, Checkpointing, Implementation, Optimizer};
use super::model::Model;
use super::part::Part;
use super::shape::{Block, Mlp};
use super::sum::Letter::{Batch, Heads, Seq};
use super::sum::Sum;
use super::transformers;

/// The memory of one part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartPlan {
    /// The part.
    pub part: Part,
    /// The most bytes that it takes at once.
    pub bytes: u64,
    /// The formula of these bytes.
    pub formula: String,
    /// The source of the formula.
    pub source: &'static str,
}

/// The memory at a moment of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepMoment {
    /// The moment.
    pub name: &'static str,
    /// The bytes that are held.
    pub bytes: u64,
}

/// The share of a divided model on the device that needs most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DevicePlan {
    /// The stage of the pipeline, from 0.
    pub stage: u64,
    /// Its share of the model, with the numbers that the formulas of the parts mean.
    pub model: Model,
    /// Its weights, before ZeRO divides them.
    pub weights: u64,
    /// The formula of these.
    pub weights_formula: String,
}

/// The adapters, which are trained instead of the weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdapterPlan {
    /// Numbers in the adapters of the whole model.
    pub weights: u64,
    /// The formula of these.
    pub formula: String,
}

/// The memory that a model needs on one device. If it is divided among several, on the one that needs most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Number of weights of the whole model, without adapters.
    pub params: u64,
    /// The formula of the shape's number of weights.
    pub params_formula: String,
    /// The sources of that formula.
    pub params_sources: Vec<&'static str>,
    /// Number of weights that process one token, if the model has experts and no other number of weights was given.
    pub active_params: Option<u64>,
    /// The adapters, if only these are trained.
    pub adapters: Option<AdapterPlan>,
    /// Number of quantised weights of the device.
    pub quantized: u64,
    /// The device that needs most, if the weights are divided among several.
    pub device: Option<DevicePlan>,
    /// The parts that take any memory.
    pub parts: Vec<PartPlan>,
    /// Moments of a step, in order.
    pub moments: Vec<StepMoment>,
    /// The most bytes over all moments.
    pub peak_bytes: u64,
}

const KORTHIKANTI: &str = "Korthikanti et al. 2022, Reducing Activation Recomputation";
const AFTER_KORTHIKANTI: &str = "counted as Korthikanti et al. 2022 do, tensor by tensor for this shape";
const EAGER: &str = "the tensors that autograd saves of Transformers' modules, operation by operation";
const EAGER_LOSS: &str = "the logarithmic softmax of 32-bit logits, its gradient and that of the logits";
const CHECKPOINTS: &str = "Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost";
const LOSS: &str = "torch.nn.functional.cross_entropy; Korthikanti et al. 2022 count 4sbv of it";
const CACHE: &str = "Pope et al. 2022, Efficiently Scaling Transformer Inference, section 2";

impl Plan {
    /// Plans a training step after the first, when the optimizer's state exists. Gradients are freed between steps, as
    /// `zero_grad()` does. Without an optimizer, plans the forward pass.
    pub fn new(model: &Model) -> Self {
        let mut shares = model.shares().into_iter().map(|share| (Self::of(model, &share), share));
        let first = shares.next().unwrap_or_else(|| (Self::of(model, model), *model));
        let is_more = |(plan, _): &(Self, Model), than: &(Self, Model)| plan.peak_bytes > than.0.peak_bytes;
        let (mut plan, share) = shares.fold(first, |most, other| if is_more(&other, &most) { other } else { most });
        plan.device = model.parallel.divides_weights().then(|| DevicePlan {
            stage: if share.share.has_embedding { 0 } else { model.parallel.pipeline - 1 },
            model: share,
            weights: share.weights(),
            weights_formula: share.shape_formula(),
        });
        plan
    }

    /// Plans a device's share.
    pub(super) fn of(whole: &Model, model: &Model) -> Self {
        let mut parts = Parts::default();
        let held = Held::of(model, &mut parts);
        let is_windowed = model.details.window.is_some() && model.implementation == Implementation::Fused;
        let seen = if is_windowed { "tokens, or the window" } else { "tokens" };
        let formula = format!("{} × {seen}", cached(model));
        let cache = parts.add(Part::KvCache, cached_bytes(model), formula, CACHE);
        let always = held.always + cache;
        let is_eager = model.implementation == Implementation::Transformers;
        let moments = match (model.optimizer, is_eager) {
            (Optimizer::Inference, _) => Self::inference(model, &mut parts, always + held.gathered),
            (_, true) => Self::eager_step(model, &mut parts, &held, always),
            (_, false) => Self::fused_step(model, &mut parts, &held, always),
        };
        parts.0.sort_by_key(|part| part.part as u8);
        let moments: Vec<StepMoment> =
            moments.into_iter().map(|(name, bytes)| StepMoment { name, bytes: clamped(bytes) }).collect();
        let peak_bytes = moments.iter().map(|moment| moment.bytes).max().unwrap_or(0);
        Self {
            params: whole.weights(),
            params_formula: whole.shape_formula(),
            params_sources: whole.shape_sources(),
            active_params: whole.active_weights(),
            adapters: whole.lora.map(|_| AdapterPlan {
                weights: clamped(whole.trained().all()),
                formula: format!("L ({})", whole.adapter_sum(true)),
            }),
            quantized: model.quantized_weights(),
            device: None,
            parts: parts.0,
            moments,
            peak_bytes,
        }
    }

    /// Plans a forward pass, of which nothing is kept.
    fn inference(model: &Model, parts: &mut Parts, always: u128) -> Moments {
        let kept = kept(model);
        parts.add(Part::Activations, kept.after_forward, kept.formula, kept.source);
        let e = u128::from(model.precision.element());
        let batch = u128::from(model.batch) * u128::from(model.vocab);
        // Transformers computes the logits of the last token of each sequence only.
        let (logits, formula) = match model.implementation {
            Implementation::Transformers => (e * batch, format!("{e}bv")),
            Implementation::Fused => (e * batch * u128::from(model.seq), format!("{e}sbv")),
        };
        let logits = parts.add(Part::Logits, if model.share.has_head { logits } else { 0 }, formula, LOSS);
        vec![("forward pass", always + kept.after_forward + logits)]
    }

    /// Plans a step as Transformers computes it.
    fn eager_step(model: &Model, parts: &mut Parts, held: &Held, always: u128) -> Moments {
        let step = transformers::step(model, held.cast);
        let flying = u128::from(model.share.in_flight);
        let before = (flying - 1) * step.activations;
        let formula = if flying > 1 { format!("{flying} × ({})", step.formula) } else { step.formula };
        parts.add(Part::Activations, flying * step.activations, formula, EAGER);
        parts.add(Part::Logits, step.logits, "12sbv".to_owned(), EAGER_LOSS);
        // From the second batch of a step on, its gradients are added to those of the first.
        let added = if model.parallel.micro_batches > model.share.in_flight { held.gradients } else { 0 };
        let held_now = always + held.gathered + before;
        let end = held_now + held.gradients + held.unreduced;
        let stream = u128::from(model.residual_bytes()) * stream(model);
        let table = u128::from(model.trained_element()) * u128::from(model.vocab) * u128::from(model.hidden);
        let has_table = model.share.has_embedding && model.lora.is_none();
        // The gradient of a table that is the output layer too is there already, and the embedding's is added to it.
        let (made, missing) = match (has_table, model.is_tied && model.share.has_head) {
            (false, _) => (0, 0),
            (true, true) => (table, 0),
            (true, false) => (0, table),
        };
        vec![
            ("end of the forward pass", held_now + added + step.forward),
            ("loss of the backward pass", held_now + added + step.loss),
            ("start of the backward pass", held_now + added + step.last_layer),
            ("end of the backward pass", (end + stream + made).max((end + step.first_layer).saturating_sub(missing))),
            ("optimizer step", always + held.gradients + held.step),
        ]
    }

    /// Plans a step with a kernel for each norm and activation function.
    fn fused_step(model: &Model, parts: &mut Parts, held: &Held, always: u128) -> Moments {
        let kept = kept(model);
        let e = u128::from(model.precision.element());
        let flying = u128::from(model.share.in_flight);
        let before = (flying - 1) * kept.after_forward;
        let most = before + kept.after_forward.max(kept.in_backward);
        parts.add(Part::Activations, most, kept.formula, kept.source);
        let has_head = model.share.has_head;
        let formula = format!("sbv ({e} + 2 × {})", model.precision.loss());
        let loss = parts.add(Part::Logits, if has_head { logits(model) } else { 0 }, formula, LOSS);
        // From the second batch of a step on, its gradients are added to those of the first.
        let added = if model.parallel.micro_batches > model.share.in_flight { held.gradients } else { 0 };
        let cast: u128 = held.cast.into_iter().sum();
        // The first gradient is that of the output layer, which may be the embedding's. The caller of the model holds
        // the logits until the backward pass has ended.
        let is_head_trained = has_head && model.lora.is_none();
        let head = u128::from(model.precision.weight()) * u128::from(model.vocab) * u128::from(model.hidden);
        let head = if is_head_trained { head } else { 0 };
        let tokens = u128::from(model.seq) * u128::from(model.batch);
        let logits = if has_head { e * tokens * u128::from(model.vocab) } else { 0 };
        let held_now = always + held.gathered + before;
        vec![
            ("end of the forward pass", held_now + added + kept.after_forward + loss + cast),
            ("start of the backward pass", held_now + kept.in_backward + logits + added + head + cast),
            ("end of the backward pass", held_now + held.gradients + held.unreduced + kept.last + logits),
            ("optimizer step", always + held.gradients + held.step),
        ]
    }

    /// Returns the most bytes that a part takes at once; 0 if it does not exist.
    pub fn bytes(&self, part: Part) -> u64 {
        self.parts.iter().find(|plan| plan.part == part).map_or(0, |plan| plan.bytes)
    }
}

/// The moments of a step, with the bytes that are held at each.
type Moments = Vec<(&'static str, u128)>;

/// The parts, while they are added up.
#[derive(Default)]
pub(super) struct Parts(Vec<PartPlan>);

impl Parts {
    /// Adds a part if it takes any memory, and returns its bytes.
    pub(super) fn add(&mut self, part: Part, bytes: u128, formula: String, source: &'static str) -> u128 {
        if bytes > 0 {
            self.0.push(PartPlan { part, bytes: clamped(bytes), formula, source });
        }
        bytes
    }
}

/// The activations of one batch at three moments.
struct KeptActivations {
    /// At the end of the forward pass.
    after_forward: u128,
    /// When the backward pass begins with the last layer.
    in_backward: u128,
    /// When the backward pass reaches the first layer.
    last: u128,
    /// Of all batches whose activations are held at once.
    formula: String,
    source: &'static str,
}

fn kept(model: &Model) -> KeptActivations {
    let layer = layer_activations(model);
    let e = u128::from(model.precision.element());
    let outside = embedding_activations(model);
    if model.optimizer == Optimizer::Inference {
        // Nothing is kept; the widest tensors of one layer exist at a time.
        let sum = token_working(model);
        // Plain attention has all scores in the format of the activations, and their softmax in 32 bits.
        let scores = match model.attention {
            Attention::Plain => Sum::default().plus(model.precision.element() + 4, &[Heads, Seq, Seq, Batch]),
            Attention::Flash => Sum::default(),
        };
        let bytes = sum.value(model) * u128::from(model.seq) * u128::from(model.batch) + scores.value(model);
        let is_one_expert = model.experts.is_some() && model.implementation == Implementation::Fused;
        let one = if is_one_expert { "one expert" } else { "one layer" };
        let scores = if scores == Sum::default() { String::new() } else { format!(" + {scores}") };
        let formula = format!("sb ({sum}){scores}: {one} at a time");
        return KeptActivations { after_forward: bytes, in_backward: 0, last: 0, formula, source: KORTHIKANTI };
    }
    let one = format!("sb ({}) + {}", token_activations(model), scores(model));
    let is_gpt = model.mlp == Mlp::Plain && model.experts.is_none() && model.block == Block::Sequential;
    let source = if is_gpt && model.lora.is_none() { KORTHIKANTI } else { AFTER_KORTHIKANTI };
    let (norm, mask) = ends(model);
    let h = model.residual_letter().symbol();
    let times = match model.share.in_flight {
        1 => String::new(),
        batches => format!("{batches} × "),
    };
    match model.checkpointing {
        Checkpointing::None => {
            let all = layer * u128::from(model.layers) + outside;
            let outside = e * u128::from(1 + norm) + u128::from(mask);
            let formula = format!("L ({one}) + {outside}sb{h}");
            let formula = if times.is_empty() { formula } else { format!("{times}({formula})") };
            KeptActivations { after_forward: all, in_backward: all, last: layer, formula, source }
        }
        Checkpointing::Every(k) => {
            let inputs = segment_inputs(model, k);
            // The last layer's output and its norm are freed before a segment is recomputed.
            let mask_bytes = if mask > 0 { stream(model) } else { 0 };
            let again = layer * u128::from(k.min(model.layers));
            let mask = if mask > 0 { format!(" + sb{h}") } else { String::new() };
            let inputs_formula = format!("⌈L/{k}⌉ {e}sb{h}{mask}");
            let formula = match times.is_empty() {
                true => format!("{inputs_formula} + {k} ({one})"),
                false => format!("{times}({inputs_formula}) + {k} ({one})"),
            };
            KeptActivations {
                after_forward: inputs + outside,
                in_backward: inputs + mask_bytes + again,
                last: again,
                formula,
                source: CHECKPOINTS,
            }
        }
    }
}

pub(super) fn clamped(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::method::Precision;
    use super::super::model::tests::GPT3;
    use super::super::shape::Experts;
    use super::*;

    /// Small enough to check every number by hand: P = 12 × 2 × 64² + 13 × 2 × 64 + 100 × 64 + 128.
    const TINY: Model =
        Model { layers: 2, hidden: 64, heads: 4, kv_heads: 4, ffn: 256, vocab: 100, seq: 16, batch: 2, ..GPT3 };
    const TINY_PARAMS: u64 = 98_304 + 1_664 + 6_400 + 128;

    #[test]
    fn a_parameter_costs_16_bytes_in_mixed_precision_with_adam() {
        for (precision, optimizer, want) in [
            (Precision::Mixed, Optimizer::Adam, 16),
            (Precision::Fp32, Optimizer::Adam, 16),
            (Precision::Bf16, Optimizer::Adam, 8),
            (Precision::Mixed, Optimizer::Momentum, 12),
            (Precision::Fp32, Optimizer::Sgd, 8),
            (Precision::Mixed, Optimizer::Inference, 2),
        ] {
            let plan = Plan::new(&Model { precision, optimizer, ..TINY });
            assert_eq!(plan.params, TINY_PARAMS);
            let parts = [Part::Weights, Part::MasterWeights, Part::Gradients, Part::OptimizerState];
            let bytes: u64 = parts.into_iter().map(|part| plan.bytes(part)).sum();
            assert_eq!(bytes, want * TINY_PARAMS, "{precision:?} {optimizer:?}");
        }
    }

    #[test]
    fn activations_by_hand() {
        // sbh = 16 × 2 × 64 = 2048; 5as/h = 5 × 4 × 16 / 64 = 5.
        let cases = [
            (Checkpointing::None, 2 * 2_048 * (34 + 5) + 5 * 2_048),
            (Checkpointing::Every(1), 2 * 2 * 2_048 + 2_048 + 2_048 * 39),
            (Checkpointing::Every(2), 2 * 2_048 + 2_048 + 2 * 2_048 * 39),
        ];
        for (checkpointing, want) in cases {
            let plan = Plan::new(&Model { checkpointing, ..TINY });
            assert_eq!(plan.bytes(Part::Activations), want, "{checkpointing:?}");
        }
    }

    #[test]
    fn the_peak_is_the_fullest_moment() {
        let plan = Plan::new(&TINY);
        let moments: Vec<u64> = plan.moments.iter().map(|moment| moment.bytes).collect();
        // 14 bytes for each weight are always held; logits are 10 × 16 × 2 × 100, the head's gradient is 2 × 100 × 64.
        let (always, kept) = (14 * TINY_PARAMS, 169_984);
        let want = [
            always + kept + 32_000,
            always + kept + 12_800 + 6_400,
            always + 2 * TINY_PARAMS + 2_048 * 39 + 6_400,
            always + 2 * TINY_PARAMS + 4 * TINY_PARAMS,
        ];
        assert_eq!(moments, want);
        assert_eq!(plan.peak_bytes, want[3]);
        let formulas: Vec<&str> = plan.parts.iter().map(|part| part.formula.as_str()).collect();
        assert_eq!(formulas[4], "L (sb (16h + 4f + 2h) + 5as²b) + 5sbh");
    }

    #[test]
    fn keys_and_values_of_llama_2_7b() {
        // 2 × 2 bytes × 32 layers × 4096 = 512 KiB for each token.
        let model = Model {
            layers: 32,
            hidden: 4_096,
            heads: 32,
            kv_heads: 32,
            optimizer: Optimizer::Inference,
            kv_tokens: 4_096,
            params: Some(6_738_415_616),
            ..GPT3
        };
        let plan = Plan::new(&model);
        assert_eq!(plan.bytes(Part::KvCache), 2 << 30);
        assert_eq!(Plan::new(&Model { kv_heads: 8, ..model }).bytes(Part::KvCache), 512 << 20);
        assert_eq!(plan.bytes(Part::Weights), 2 * 6_738_415_616);
        assert_eq!(plan.moments.len(), 1);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let most = Model {
            layers: 1 << 16,
            hidden: 1 << 20,
            heads: 1 << 16,
            kv_heads: 1 << 16,
            ffn: 1 << 22,
            vocab: 1 << 24,
            seq: 1 << 24,
            batch: 1 << 20,
            params: Some(1 << 50),
            kv_tokens: 1 << 40,
            ..GPT3
        };
        assert_eq!(most.check(), Ok(()));
        assert_eq!(Plan::new(&most).peak_bytes, u64::MAX);
        // The weights of the shape are counted without overflow too.
        assert!(Model { params: None, ..most }.weights() > 1 << 50);
    }

    proptest! {
        /// Whatever numbers a file or a command line gives, a shape that is accepted can be planned. All are powers of two
        /// around the bounds, so that many shapes are accepted.
        #[test]
        fn every_accepted_shape_is_planned(exponents in vec(0_u32..21, 11), is_wild: bool, shapes in 0_usize..24) {
            let number = |i: usize| if is_wild && i == shapes { u64::MAX } else { 1_u64 << exponents.get(i).unwrap_or(&0) };
            let mlp = if shapes % 2 == 0 { Mlp::Plain } else { Mlp::Gated };
            let block = if shapes % 4 < 2 { Block::Sequential } else { Block::ParallelOneNorm };
            let experts = Experts { count: number(8), active: number(9), shared: number(4) };
            let model = Model {
                layers: number(0),
                hidden: number(1),
                heads: number(2),
                kv_heads: number(3),
                head_dim: (shapes % 3 == 0).then(|| number(4)),
                ffn: number(5),
                seq: number(6),
                kv_tokens: number(7),
                experts: (shapes % 5 == 0).then_some(experts),
                positions: number(10),
                mlp,
                block,
                ..GPT3
            };
            if model.check().is_ok() {
                let plan = Plan::new(&model);
                prop_assert!(plan.peak_bytes >= plan.bytes(Part::Weights));
                prop_assert!(plan.active_params.is_none_or(|active| active <= plan.params));
            }
        }
    }
}
