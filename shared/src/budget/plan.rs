//! The plan: the bytes of each part and at each moment of a step.

use serde::Serialize;

use super::activations::{
    cached, embedding_activations, layer_activations, logits, scores, segment_inputs, stream, token_activations,
    token_working,
};
use super::method::{Checkpointing, Optimizer};
use super::model::Model;
use super::shape::{Block, Mlp};

/// What memory is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Part {
    /// The weights that the model computes with.
    Weights,
    /// 32-bit copies of the weights.
    MasterWeights,
    /// Gradients of the weights.
    Gradients,
    /// The optimizer's state between steps.
    OptimizerState,
    /// What the forward pass keeps for the backward pass, and what is recomputed.
    Activations,
    /// The output layer and the loss.
    Logits,
    /// Temporary memory of the optimizer's step.
    OptimizerStep,
    /// Cached keys and values.
    KvCache,
    /// Temporary memory of operations, and input.
    Working,
}

impl Part {
    /// All parts, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Weights,
        Self::MasterWeights,
        Self::Gradients,
        Self::OptimizerState,
        Self::Activations,
        Self::Logits,
        Self::OptimizerStep,
        Self::KvCache,
        Self::Working,
    ];

    /// Returns the name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::MasterWeights => "master weights",
            Self::Gradients => "gradients",
            Self::OptimizerState => "optimizer state",
            Self::Activations => "activations",
            Self::Logits => "logits and loss",
            Self::OptimizerStep => "optimizer step",
            Self::KvCache => "KV cache",
            Self::Working => "working memory",
        }
    }
}

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
pub struct Moment {
    /// The moment.
    pub name: &'static str,
    /// The bytes that are held.
    pub bytes: u64,
}

/// The memory that a model needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Number of weights.
    pub params: u64,
    /// The formula of the shape's number of weights.
    pub params_formula: String,
    /// The sources of that formula.
    pub params_sources: Vec<&'static str>,
    /// Number of weights that process one token, if the model has experts and no other number of weights was given.
    pub active_params: Option<u64>,
    /// The parts that take any memory.
    pub parts: Vec<PartPlan>,
    /// Moments of a step, in order.
    pub moments: Vec<Moment>,
    /// The most bytes over all moments.
    pub peak_bytes: u64,
}

const ZERO: &str = "Rajbhandari et al. 2020, ZeRO, section 3.1";
const KORTHIKANTI: &str = "Korthikanti et al. 2022, Reducing Activation Recomputation";
const AFTER_KORTHIKANTI: &str = "counted as Korthikanti et al. 2022 do, tensor by tensor for this shape";
const CHECKPOINTS: &str = "Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost";
const LOSS: &str = "torch.nn.functional.cross_entropy; Korthikanti et al. 2022 count 4sbv of it";
const FOREACH: &str = "torch.optim.adam._multi_tensor_adam: _foreach_sqrt makes a tensor for each weight";
const CACHE: &str = "Pope et al. 2022, Efficiently Scaling Transformer Inference, section 2";

impl Plan {
    /// Plans a training step after the first, when the optimizer's state exists. Gradients are freed between steps, as
    /// `zero_grad()` does. Without an optimizer, plans the forward pass.
    pub fn new(model: &Model) -> Self {
        let (p, e) = (u128::from(model.weights()), u128::from(model.precision.element()));
        let state = u128::from(model.precision.state());
        let trains = model.optimizer != Optimizer::Inference;
        let states = u128::from(model.optimizer.states());
        let master = if trains { u128::from(model.precision.master()) } else { 0 };
        let kept = kept(model);

        let mut parts = Parts::default();
        let weights = parts.add(Part::Weights, p * e, format!("{e}P"), ZERO);
        let master = parts.add(Part::MasterWeights, master * p, format!("{master}P"), ZERO);
        let gradients = if trains { e * p } else { 0 };
        let gradients = parts.add(Part::Gradients, gradients, format!("{e}P"), ZERO);
        let optimizer = states * state * p;
        let optimizer = parts.add(Part::OptimizerState, optimizer, format!("{states} × {state}P"), ZERO);
        parts.add(Part::Activations, kept.after_forward.max(kept.in_backward), kept.formula, kept.source);
        let loss =
            if trains { logits(model) } else { logits(model) / (e + 2 * u128::from(model.precision.loss())) * e };
        let formula = match trains {
            true => format!("sbv ({e} + 2 × {})", model.precision.loss()),
            false => format!("{e}sbv"),
        };
        let loss = parts.add(Part::Logits, loss, formula, LOSS);
        // The square roots of Adam's second moments; other optimizers work in place.
        let roots = if model.optimizer == Optimizer::Adam { state * p } else { 0 };
        let roots = parts.add(Part::OptimizerStep, roots, format!("{state}P"), FOREACH);
        let cache = cached(model).value(model) * u128::from(model.kv_tokens);
        let formula = format!("{} × tokens", cached(model));
        let cache = parts.add(Part::KvCache, cache, formula, CACHE);

        let always = weights + master + optimizer + cache;
        let mut moments = vec![("end of the forward pass", always + kept.after_forward + loss)];
        if trains {
            // The first gradient is that of the output layer, which may be the embedding's. The caller of the model holds
            // the logits until the backward pass has ended.
            let head = e * u128::from(model.vocab) * u128::from(model.hidden);
            let held = e * u128::from(model.seq) * u128::from(model.batch) * u128::from(model.vocab);
            moments.push(("start of the backward pass", always + kept.in_backward + head + held));
            moments.push(("end of the backward pass", always + gradients + kept.last + held));
            moments.push(("optimizer step", always + gradients + roots));
        }
        let moments: Vec<Moment> =
            moments.into_iter().map(|(name, bytes)| Moment { name, bytes: clamped(bytes) }).collect();
        let peak_bytes = moments.iter().map(|moment| moment.bytes).max().unwrap_or(0);
        Self {
            params: model.weights(),
            params_formula: model.shape_formula(),
            params_sources: model.shape_sources(),
            active_params: model.active_weights(),
            parts: parts.0,
            moments,
            peak_bytes,
        }
    }

    /// Returns the most bytes that a part takes at once; 0 if it does not exist.
    pub fn bytes(&self, part: Part) -> u64 {
        self.parts.iter().find(|plan| plan.part == part).map_or(0, |plan| plan.bytes)
    }
}

/// The parts, while they are added up.
#[derive(Default)]
struct Parts(Vec<PartPlan>);

impl Parts {
    /// Adds a part if it takes any memory, and returns its bytes.
    fn add(&mut self, part: Part, bytes: u128, formula: String, source: &'static str) -> u128 {
        if bytes > 0 {
            self.0.push(PartPlan { part, bytes: clamped(bytes), formula, source });
        }
        bytes
    }
}

/// The activations at three moments.
struct Kept {
    /// At the end of the forward pass.
    after_forward: u128,
    /// When the backward pass begins with the last layer.
    in_backward: u128,
    /// When the backward pass reaches the first layer.
    last: u128,
    formula: String,
    source: &'static str,
}

fn kept(model: &Model) -> Kept {
    let layer = layer_activations(model);
    let e = u128::from(model.precision.element());
    let outside = embedding_activations(model);
    if model.optimizer == Optimizer::Inference {
        // Nothing is kept; the widest tensors of one layer exist at a time.
        let sum = token_working(model);
        let bytes = sum.value(model) * u128::from(model.seq) * u128::from(model.batch);
        let one = if model.experts.is_some() { "one expert" } else { "one layer" };
        let formula = format!("sb ({sum}): {one} at a time");
        return Kept { after_forward: bytes, in_backward: 0, last: 0, formula, source: KORTHIKANTI };
    }
    let one = format!("sb ({}) + {}", token_activations(model), scores(model));
    let is_gpt = model.mlp == Mlp::Plain && model.experts.is_none() && model.block == Block::Sequential;
    let source = if is_gpt { KORTHIKANTI } else { AFTER_KORTHIKANTI };
    let ends = if model.dropout { format!("{}sbh", 2 * e + 1) } else { format!("{}sbh", 2 * e) };
    match model.checkpointing {
        Checkpointing::None => {
            let all = layer * u128::from(model.layers) + outside;
            let formula = format!("L ({one}) + {ends}");
            Kept { after_forward: all, in_backward: all, last: layer, formula, source }
        }
        Checkpointing::Every(k) => {
            let inputs = segment_inputs(model, k);
            // The last layer's output and its norm are freed before a segment is recomputed.
            let mask = if model.dropout { stream(model) } else { 0 };
            let again = layer * u128::from(k.min(model.layers));
            let mask_formula = if model.dropout { " + sbh" } else { "" };
            Kept {
                after_forward: inputs + outside,
                in_backward: inputs + mask + again,
                last: again,
                formula: format!("⌈L/{k}⌉ {e}sbh{mask_formula} + {k} ({one})"),
                source: CHECKPOINTS,
            }
        }
    }
}

fn clamped(bytes: u128) -> u64 {
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
