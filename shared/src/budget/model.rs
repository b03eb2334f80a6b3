//! The shape of a model and the method of its training.

/// The number formats of weights, gradients, optimizer state and activations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 16-bit weights, gradients and activations, with a 32-bit master copy of the weights and 32-bit optimizer state
    /// (Micikevicius et al. 2018).
    #[default]
    Mixed,
    /// 32 bits throughout.
    Fp32,
    /// 16 bits throughout, including the optimizer's state.
    Bf16,
}

impl Precision {
    /// Returns the bytes of a number of weights, gradients and activations.
    pub fn element(self) -> u64 {
        match self {
            Self::Mixed | Self::Bf16 => 2,
            Self::Fp32 => 4,
        }
    }

    /// Returns the bytes of a number of the optimizer's state.
    pub fn state(self) -> u64 {
        match self {
            Self::Mixed | Self::Fp32 => 4,
            Self::Bf16 => 2,
        }
    }

    /// Returns the bytes of a weight's master copy; 0 if there is none.
    pub fn master(self) -> u64 {
        match self {
            Self::Mixed => 4,
            Self::Fp32 | Self::Bf16 => 0,
        }
    }

    /// Returns the bytes of a number in the loss function. In mixed precision, `cross_entropy` of 16-bit logits is
    /// computed in 32 bits.
    pub fn loss(self) -> u64 {
        match self {
            Self::Mixed | Self::Fp32 => 4,
            Self::Bf16 => 2,
        }
    }
}

/// The algorithm that updates the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Optimizer {
    /// Adam or AdamW: two numbers for each weight.
    #[default]
    Adam,
    /// SGD with momentum: one number for each weight.
    Momentum,
    /// Plain SGD: no state.
    Sgd,
    /// No training: no gradients, and nothing is kept for a backward pass.
    Inference,
}

impl Optimizer {
    /// Returns how many numbers are kept for each weight between steps.
    pub fn states(self) -> u64 {
        match self {
            Self::Adam => 2,
            Self::Momentum => 1,
            Self::Sgd | Self::Inference => 0,
        }
    }
}

/// How attention is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attention {
    /// In tiles, without a matrix of all scores (Dao et al. 2022).
    #[default]
    Flash,
    /// With a matrix of all scores, `seq` by `seq` for each head.
    Plain,
}

/// What is kept for the backward pass, and what is recomputed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpointing {
    /// Everything is kept.
    #[default]
    None,
    /// The input of every n-th layer is kept, and what is between is recomputed (`torch.utils.checkpoint`). 1 is full
    /// recomputation.
    Every(u64),
}

/// A transformer (GPT: tied embeddings, two norms and a two-matrix MLP in each layer) and how it is trained or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Number of layers.
    pub layers: u64,
    /// Hidden size: the width of the residual stream.
    pub hidden: u64,
    /// Attention heads.
    pub heads: u64,
    /// Heads of keys and values; fewer than `heads` if queries share them.
    pub kv_heads: u64,
    /// Width of the MLP's hidden layer.
    pub ffn: u64,
    /// Size of the vocabulary in tokens.
    pub vocab: u64,
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
}

/// Invalid model shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A number is 0 or too large to compute with.
    #[error("{0} must be between 1 and {1}")]
    Range(&'static str, u64),
    /// Heads must have equal width.
    #[error("hidden ({0}) must be a multiple of heads ({1})")]
    Heads(u64, u64),
    /// Keys must be shared evenly by the queries.
    #[error("heads ({0}) must be a multiple of kv-heads ({1})")]
    KvHeads(u64, u64),
}

impl Model {
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
            return Err(ModelError::Range("kv", 1 << 40));
        }
        if !self.hidden.is_multiple_of(self.heads) {
            return Err(ModelError::Heads(self.hidden, self.heads));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(ModelError::KvHeads(self.heads, self.kv_heads));
        }
        Ok(())
    }

    /// Returns the weights of one layer, tensor by tensor: two for the first norm; matrix and bias of queries, keys and
    /// values, and of the projection; two for the second norm; matrix and bias of the MLP's two halves.
    pub fn layer_tensors(&self) -> [u64; 12] {
        let (h, f, qkv) = (self.hidden, self.ffn, self.qkv_width());
        [h, h, qkv * h, qkv, h * h, h, h, h, f * h, f, h * f, h]
    }

    /// Returns the width of queries, keys and values together.
    pub fn qkv_width(&self) -> u64 {
        let head = self.hidden / self.heads.max(1);
        self.hidden + 2 * head * self.kv_heads
    }

    /// Returns the number of weights that the shape has: `L (4h² + 2hf + 9h + f) + vh + 2h` if every head has its own
    /// keys, which is `L (12h² + 13h) + vh + 2h` for `f = 4h`. The embedding is also the output layer.
    pub fn shape_params(&self) -> u64 {
        let layer: u64 = self.layer_tensors().iter().sum();
        self.layers * layer + self.vocab * self.hidden + 2 * self.hidden
    }

    /// Returns the number of weights: as given, or else that of the shape.
    pub fn weights(&self) -> u64 {
        self.params.unwrap_or_else(|| self.shape_params())
    }
}

fn in_range(name: &'static str, number: u64, most: u64) -> Result<(), ModelError> {
    if (1..=most).contains(&number) { Ok(()) } else { Err(ModelError::Range(name, most)) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// GPT-3's shape (Brown et al. 2020, table 2.1) with the batch and vocabulary of Korthikanti et al., table 3.
    pub(in super::super) const GPT3: Model = Model {
        layers: 96,
        hidden: 12_288,
        heads: 96,
        kv_heads: 96,
        ffn: 4 * 12_288,
        vocab: 51_200,
        seq: 2_048,
        batch: 1,
        params: None,
        precision: Precision::Mixed,
        optimizer: Optimizer::Adam,
        attention: Attention::Plain,
        checkpointing: Checkpointing::None,
        dropout: true,
        kv_tokens: 0,
    };

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
        let cases = [
            (Model { layers: 0, ..GPT3 }, "layers must be between 1 and 65536"),
            (Model { heads: 7, kv_heads: 7, ..GPT3 }, "hidden (12288) must be a multiple of heads (7)"),
            (Model { kv_heads: 36, ..GPT3 }, "heads (96) must be a multiple of kv-heads (36)"),
            (Model { kv_heads: 97, ..GPT3 }, "kv-heads must be between 1 and 96"),
            (Model { batch: u64::MAX, ..GPT3 }, "batch must be between 1 and 1048576"),
            (Model { checkpointing: Checkpointing::Every(97), ..GPT3 }, "checkpoint must be between 1 and 96"),
            (Model { params: Some(0), ..GPT3 }, "params must be between 1 and 1125899906842624"),
        ];
        for (model, want) in cases {
            assert_eq!(model.check().map_err(|error| error.to_string()), Err(want.to_owned()));
        }
        assert_eq!(GPT3.check(), Ok(()));
    }
}
