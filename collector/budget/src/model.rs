//! The shape of a model and the method of its training.

use serde::Serialize;

use super::details::Details;
use super::lora::{Lora, TargetError};
use super::method::{Attention, Checkpointing, Implementation, Optimizer, Precision};
use super::parallel::{Parallel, ParallelError, Share};
use super::quantization::Quantization;
use super::shape::{Biases, Block, Experts, Mlp, Norm};

/// A transformer and how it is trained or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Model {
    /// Number of layers.
    pub layers: u64,
    /// Hidden size: the width of the residual stream.
    pub hidden: u64,
    /// Attention heads.
    pub heads: u64,
    /// Heads of keys and values; fewer than `heads` if queries share them.
    pub kv_heads: u64,
    /// Width of a head, if it is not `hidden / heads`.
    pub head_dim: Option<u64>,
    /// Width of the MLP's hidden layer, or of that of each expert.
    pub ffn: u64,
    /// Size of the vocabulary in tokens.
    pub vocab: u64,
    /// The kind of MLP, or of each expert.
    pub mlp: Mlp,
    /// The kind of norm.
    pub norm: Norm,
    /// How attention and MLP follow each other.
    pub block: Block,
    /// Which linear layers have biases.
    pub biases: Biases,
    /// Whether the output layer is the embedding.
    pub is_tied: bool,
    /// Positions with a learned embedding; 0 if there are none.
    pub positions: u64,
    /// The experts that take the place of each layer's MLP.
    pub experts: Option<Experts>,
    /// Tokens in a sequence.
    pub seq: u64,
    /// Sequences in a batch.
    pub batch: u64,
    /// Number of weights, if it differs from that of the shape.
    pub params: Option<u64>,
    /// Number formats.
    pub precision: Precision,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// How attention is computed.
    pub attention: Attention,
    /// What is kept for the backward pass.
    pub checkpointing: Checkpointing,
    /// Whether there is dropout: on the embedding, on the scores, and after attention and MLP.
    pub dropout: bool,
    /// Tokens whose keys and values are cached, over all sequences; 0 for no cache.
    pub kv_tokens: u64,
    /// Adapters that are trained instead of the weights.
    pub lora: Option<Lora>,
    /// How the matrices of the layers are stored, if in fewer bits.
    pub quantization: Option<Quantization>,
    /// Whether PEFT's `prepare_model_for_kbit_training` cast what is not quantised to 32 bits. Then quantised matrices, too, have
    /// results in 32 bits, that of their input.
    pub is_prepared: bool,
    /// What the model type has beside this shape.
    pub details: Details,
    /// Whose modules compute the model.
    pub implementation: Implementation,
    /// How the model is divided among devices.
    pub parallel: Parallel,
    /// Which part of the model this is.
    #[serde(skip)]
    pub share: Share,
}

/// Invalid model shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A number is 0 or too large to compute with.
    #[error("{0} must be between 1 and {1}")]
    Range(&'static str, u64),
    /// A number that may be 0 is too large to compute with.
    #[error("{0} must be at most {1}")]
    Most(&'static str, u64),
    /// Heads must have equal width.
    #[error("hidden ({0}) must be a multiple of heads ({1})")]
    Heads(u64, u64),
    /// Keys must be shared evenly by the queries.
    #[error("heads ({0}) must be a multiple of kv-heads ({1})")]
    KvHeads(u64, u64),
    /// The numbers are in range, but the model has too many weights to compute with.
    #[error("the shape has {0} weights, and at most {MOST_WEIGHTS} can be planned")]
    Weights(u128),
    /// The model has no such matrix.
    #[error(transparent)]
    Targets(#[from] TargetError),
    /// The model can't be divided so.
    #[error(transparent)]
    Parallel(#[from] ParallelError),
    /// The format is one of experts.
    #[error("{0} stores the weights of experts in fewer bits, and the model has none")]
    NoExperts(&'static str),
    /// Transformers trains neither weights of the format nor adapters of them.
    #[error("Transformers only runs weights in {0}, and trains no adapters of them")]
    Untrainable(&'static str),
    /// What is prepared is quantised, and has adapters.
    #[error("kbit-training prepares weights in int8 or nf4 for adapters")]
    Prepared,
    /// Only adapters of quantised weights can be trained.
    #[error("quantised weights can't be trained: add adapters, or leave out the optimizer")]
    Quantized,
}

/// The most weights of a shape: far above any model, and low enough that all bytes fit into 64 bits.
const MOST_WEIGHTS: u128 = 1 << 60;

impl Model {
    /// Returns a GPT in mixed precision with Adam and tiled attention, without dropout. Its embedding is also its output
    /// layer, and its MLP is four times as wide as the residual stream.
    pub const fn gpt(layers: u64, hidden: u64, heads: u64, vocab: u64, seq: u64, batch: u64) -> Self {
        Self {
            layers,
            hidden,
            heads,
            kv_heads: heads,
            head_dim: None,
            ffn: 4 * hidden,
            vocab,
            mlp: Mlp::Plain,
            norm: Norm::Layer,
            block: Block::Sequential,
            biases: Biases::ALL,
            is_tied: true,
            positions: 0,
            experts: None,
            seq,
            batch,
            params: None,
            precision: Precision::Mixed,
            optimizer: Optimizer::Adam,
            attention: Attention::Flash,
            checkpointing: Checkpointing::None,
            dropout: false,
            kv_tokens: 0,
            lora: None,
            quantization: None,
            is_prepared: false,
            details: Details::NONE,
            implementation: Implementation::Fused,
            parallel: Parallel::ONE,
            share: Share::WHOLE,
        }
    }

    /// The upper bound of each number. Together they keep all results below 2^127, and are far above any model.
    const BOUNDS: [(&'static str, u64); 6] = [
        ("layers", 1 << 16),
        ("hidden", 1 << 20),
        ("heads", 1 << 16),
        ("vocab", 1 << 24),
        ("seq", 1 << 24),
        ("batch", 1 << 20),
    ];

    /// Checks that the shape is valid.
    pub fn check(&self) -> Result<(), ModelError> {
        let numbers = [self.layers, self.hidden, self.heads, self.vocab, self.seq, self.batch];
        for ((name, most), number) in Self::BOUNDS.into_iter().zip(numbers) {
            in_range(name, number, most)?;
        }
        in_range("ffn", self.ffn, 1 << 22)?;
        in_range("kv-heads", self.kv_heads, self.heads)?;
        if let Some(params) = self.params {
            in_range("params", params, 1 << 50)?;
        }
        if let Checkpointing::Every(layers) = self.checkpointing {
            in_range("checkpoint", layers, self.layers)?;
        }
        if self.kv_tokens > 1 << 40 {
            return Err(ModelError::Most("kv", 1 << 40));
        }
        if self.positions > 1 << 24 {
            return Err(ModelError::Most("positions", 1 << 24));
        }
        if let Some(experts) = self.experts {
            in_range("experts", experts.count, 1 << 12)?;
            in_range("active-experts", experts.active, experts.count)?;
            if experts.shared > 1 << 8 {
                return Err(ModelError::Most("shared-experts", 1 << 8));
            }
        }
        if let Some(width) = self.head_dim {
            in_range("head-dim", width, 1 << 20)?;
        } else if !self.hidden.is_multiple_of(self.heads) {
            return Err(ModelError::Heads(self.hidden, self.heads));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(ModelError::KvHeads(self.heads, self.kv_heads));
        }
        if let Some(lora) = self.lora {
            in_range("lora-rank", lora.rank, 1 << 16)?;
            lora.check(self)?;
        }
        if let Some(quantization) = self.quantization {
            quantization.check(self)?;
        }
        // Prepared weights have 32 bits, as these precisions have them.
        let is_wide = matches!(self.precision, Precision::Fp32 | Precision::Autocast);
        if self.is_prepared && (self.quantization.is_none() || self.lora.is_none() || !is_wide) {
            return Err(ModelError::Prepared);
        }
        let Parallel { data, tensor, pipeline, micro_batches, expert, .. } = self.parallel;
        for (name, number) in [("data", data), ("tensor", tensor), ("pipeline", pipeline), ("expert-parallel", expert)]
        {
            in_range(name, number, 1 << 16)?;
        }
        in_range("micro-batches", micro_batches, 1 << 16)?;
        self.parallel.check(self)?;
        match self.wide_shape_params() {
            weights if weights > MOST_WEIGHTS => Err(ModelError::Weights(weights)),
            _ => Ok(()),
        }
    }

    /// Returns the width of a head.
    pub fn head_width(&self) -> u64 {
        self.head_dim.unwrap_or(self.hidden / self.heads.max(1))
    }

    /// Returns the width of all queries.
    pub fn query_width(&self) -> u64 {
        self.heads * self.head_width()
    }

    /// Returns the width of the attention's result.
    pub fn attended_width(&self) -> u64 {
        self.details.latent.map_or(self.query_width(), |latent| self.heads * latent.value)
    }

    /// Returns the width of all keys, which is that of all values.
    pub fn key_width(&self) -> u64 {
        self.kv_heads * self.head_width()
    }

    /// Returns the width of queries, keys and values together.
    pub fn qkv_width(&self) -> u64 {
        self.query_width() + 2 * self.key_width()
    }
}

fn in_range(name: &'static str, number: u64, most: u64) -> Result<(), ModelError> {
    if (1..=most).contains(&number) { Ok(()) } else { Err(ModelError::Range(name, most)) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// GPT-3's shape (Brown et al. 2020, table 2.1) with the batch and vocabulary of Korthikanti et al., table 3.
    pub(in super::super) const GPT3: Model =
        Model { attention: Attention::Plain, dropout: true, ..Model::gpt(96, 12_288, 96, 51_200, 2_048, 1) };

    #[test]
    fn the_shape_of_gpt3_has_its_weights() {
        assert!((174e9..176e9).contains(&(GPT3.weights() as f64)), "{}", GPT3.weights());
        let (l, h, v) = (GPT3.layers, GPT3.hidden, GPT3.vocab);
        assert_eq!(GPT3.shape_params(), l * (12 * h * h + 13 * h) + v * h + 2 * h);
        // Shared keys: llama 2 70B has 8 for its 64 heads.
        let grouped = Model { heads: 64, kv_heads: 8, hidden: 8_192, ..GPT3 };
        assert_eq!(grouped.qkv_width(), 8_192 + 2 * 1_024);
    }

    #[test]
    fn invalid_shapes_are_refused() {
        let experts = |count, active, shared| Some(Experts { count, active, shared });
        let cases = [
            (Model { layers: 0, ..GPT3 }, "layers must be between 1 and 65536"),
            (Model { heads: 7, kv_heads: 7, ..GPT3 }, "hidden (12288) must be a multiple of heads (7)"),
            (Model { kv_heads: 36, ..GPT3 }, "heads (96) must be a multiple of kv-heads (36)"),
            (Model { kv_heads: 97, ..GPT3 }, "kv-heads must be between 1 and 96"),
            (Model { batch: u64::MAX, ..GPT3 }, "batch must be between 1 and 1048576"),
            (Model { checkpointing: Checkpointing::Every(97), ..GPT3 }, "checkpoint must be between 1 and 96"),
            (Model { head_dim: Some(0), ..GPT3 }, "head-dim must be between 1 and 1048576"),
            (Model { positions: u64::MAX, ..GPT3 }, "positions must be at most 16777216"),
            (Model { kv_tokens: u64::MAX, ..GPT3 }, "kv must be at most 1099511627776"),
            (Model { experts: experts(0, 0, 0), ..GPT3 }, "experts must be between 1 and 4096"),
            (Model { experts: experts(8, 9, 0), ..GPT3 }, "active-experts must be between 1 and 8"),
            (Model { experts: experts(8, 2, 257), ..GPT3 }, "shared-experts must be at most 256"),
            (
                Model {
                    layers: 1 << 16,
                    hidden: 1 << 20,
                    ffn: 1 << 22,
                    heads: 1,
                    kv_heads: 1,
                    experts: experts(4_096, 1, 0),
                    ..GPT3
                },
                "the shape has 2361473161264279584768 weights, and at most 1152921504606846976 can be planned",
            ),
            (Model { params: Some(0), ..GPT3 }, "params must be between 1 and 1125899906842624"),
        ];
        for (model, want) in cases {
            assert_eq!(model.check().map_err(|error| error.to_string()), Err(want.to_owned()));
        }
        assert_eq!(GPT3.check(), Ok(()));
    }
}
