//! The options that describe a model's shape: each overrides what a `config.json` says.

use std::path::PathBuf;

use budget::{Biases, Block, Experts, Mlp, Model, Norm};
use clap::{Args, ValueEnum};
use trace::units::Count;

use super::config::{GPT, ModelConfig};
use super::count;
use crate::cli::choice::Offered;

/// Kinds of MLP as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum MlpName {
    /// Two matrices, as in GPT
    Plain,
    /// Three matrices (SwiGLU), as in llama
    Gated,
}

/// Kinds of norm as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum NormName {
    /// LayerNorm: a weight and a bias
    Layer,
    /// RMSNorm: a weight
    Rms,
    /// RMSNorm in 32 bits, as in Gemma
    GemmaRms,
}

/// The order of a layer's halves as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum BlockName {
    /// Attention, then the MLP
    Sequential,
    /// Attention beside the MLP, each with its norm
    Parallel,
    /// Attention beside the MLP, with one norm
    ParallelOneNorm,
}

/// Biases as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum BiasName {
    /// In all linear layers but the output layer
    All,
    /// For queries, keys and values only
    Qkv,
    /// None
    None,
}

/// The relation of embedding and output layer as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EmbeddingsName {
    /// One matrix for both
    Tied,
    /// A matrix for each
    Untied,
}

/// The options of a model's shape.
#[derive(Args, Debug)]
#[command(next_help_heading = "Model")]
pub(super) struct Shape {
    /// Model whose published shape is planned, such as llama-3-8b; options override it
    #[arg(help_heading = None, value_name = "MODEL", value_parser = Offered::models(), hide_possible_values = true)]
    pub(super) name: Option<String>,
    /// Read the shape from a model's config.json (Hugging Face); options override it
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(super) config: Option<PathBuf>,
    /// Number of weights, such as 7B or 7e9 [default: computed from the shape]
    #[arg(long, value_name = "N")]
    params: Option<String>,
    /// Number of layers [default: 32]
    #[arg(long, value_name = "N")]
    layers: Option<String>,
    /// Width of the residual stream [default: 4096]
    #[arg(long, value_name = "N")]
    hidden: Option<String>,
    /// Number of attention heads [default: 32]
    #[arg(long, value_name = "N")]
    heads: Option<String>,
    /// Number of key and value heads [default: same as --heads]
    #[arg(long, value_name = "N")]
    kv_heads: Option<String>,
    /// Width of a head [default: --hidden divided by --heads]
    #[arg(long, value_name = "N")]
    head_dim: Option<String>,
    /// Width of the MLP, or of each expert [default: four times --hidden]
    #[arg(long, value_name = "N")]
    ffn: Option<String>,
    /// Vocabulary size in tokens [default: 32000]
    #[arg(long, value_name = "N")]
    vocab: Option<String>,
    /// MLP: two matrices, or three [default: plain]
    #[arg(long, value_enum)]
    mlp: Option<MlpName>,
    /// Norms [default: layer]
    #[arg(long, value_enum)]
    norm: Option<NormName>,
    /// Biases of linear layers [default: all]
    #[arg(long, value_enum)]
    bias: Option<BiasName>,
    /// Whether the output layer is the embedding [default: tied]
    #[arg(long, value_enum)]
    embeddings: Option<EmbeddingsName>,
    /// Order of attention and MLP [default: sequential]
    #[arg(long, value_enum)]
    block: Option<BlockName>,
    /// Positions with a learned embedding [default: 0]
    #[arg(long, value_name = "N")]
    positions: Option<String>,
    /// Experts of each layer among which a router chooses [default: 0, a single MLP]
    #[arg(long, value_name = "N")]
    experts: Option<String>,
    /// Experts that process each token
    #[arg(long, value_name = "N")]
    active_experts: Option<String>,
    /// Experts of each layer that process every token [default: 0]
    #[arg(long, value_name = "N")]
    shared_experts: Option<String>,
}

impl Shape {
    /// Returns the names of the options that were given and that a file has too, without the dashes.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("layers", self.layers.is_some()),
            ("hidden", self.hidden.is_some()),
            ("heads", self.heads.is_some()),
            ("kv-heads", self.kv_heads.is_some()),
            ("head-dim", self.head_dim.is_some()),
            ("ffn", self.ffn.is_some()),
            ("vocab", self.vocab.is_some()),
            ("mlp", self.mlp.is_some()),
            ("norm", self.norm.is_some()),
            ("bias", self.bias.is_some()),
            ("embeddings", self.embeddings.is_some()),
            ("block", self.block.is_some()),
            ("positions", self.positions.is_some()),
            ("experts", self.experts.is_some()),
            ("active-experts", self.active_experts.is_some()),
            ("shared-experts", self.shared_experts.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    /// Returns the model of the file and the options, which is not checked yet. What the shape does not say has defaults.
    pub(super) fn model(&self, config: Option<&ModelConfig>) -> Result<Model, String> {
        let read = |option: &str, text: &Option<String>, what: &str| {
            text.as_ref().map(|text| count::parse(option, text, what)).transpose()
        };
        let base = config.map_or(GPT, |config| config.model);
        let hidden = read("--hidden", &self.hidden, "numbers in the residual stream")?.unwrap_or(base.hidden);
        let heads = read("--heads", &self.heads, "heads")?.unwrap_or(base.heads);
        // Without a file, the other widths follow from those that are given.
        let (kv_heads, ffn) = match config {
            Some(_) => (base.kv_heads, base.ffn),
            None => (heads, hidden.saturating_mul(4)),
        };
        let params = read("--params", &self.params, "weights")?;
        let model = Model {
            params,
            layers: read("--layers", &self.layers, "layers")?.unwrap_or(base.layers),
            hidden,
            heads,
            kv_heads: read("--kv-heads", &self.kv_heads, "heads")?.unwrap_or(kv_heads),
            head_dim: read("--head-dim", &self.head_dim, "numbers in a head")?.or(base.head_dim),
            ffn: read("--ffn", &self.ffn, "numbers in the MLP")?.unwrap_or(ffn),
            vocab: read("--vocab", &self.vocab, "tokens")?.unwrap_or(base.vocab),
            mlp: match self.mlp {
                Some(MlpName::Plain) => Mlp::Plain,
                Some(MlpName::Gated) => Mlp::Gated,
                None => base.mlp,
            },
            norm: match self.norm {
                Some(NormName::Layer) => Norm::Layer,
                Some(NormName::Rms) => Norm::Rms,
                Some(NormName::GemmaRms) => Norm::GemmaRms,
                None => base.norm,
            },
            block: match self.block {
                Some(BlockName::Sequential) => Block::Sequential,
                Some(BlockName::Parallel) => Block::Parallel,
                Some(BlockName::ParallelOneNorm) => Block::ParallelOneNorm,
                None => base.block,
            },
            biases: match self.bias {
                Some(BiasName::All) => Biases::ALL,
                Some(BiasName::Qkv) => Biases { qkv: true, ..Biases::NONE },
                Some(BiasName::None) => Biases::NONE,
                None => base.biases,
            },
            is_tied: match self.embeddings {
                Some(EmbeddingsName::Tied) => true,
                Some(EmbeddingsName::Untied) => false,
                None => base.is_tied,
            },
            positions: read("--positions", &self.positions, "positions")?.unwrap_or(base.positions),
            experts: experts(
                base.experts,
                read("--experts", &self.experts, "experts")?,
                read("--active-experts", &self.active_experts, "experts")?,
                read("--shared-experts", &self.shared_experts, "experts")?,
            )?,
            ..base
        };
        self.check_params(&model, config)?;
        Ok(model)
    }

    /// Refuses a number of weights that is not that of a shape which a file or the options tell.
    fn check_params(&self, model: &Model, config: Option<&ModelConfig>) -> Result<(), String> {
        let Some(params) =
            model.params.filter(|_| config.is_some() || (self.layers.is_some() && self.hidden.is_some()))
        else {
            return Ok(());
        };
        // Impossible shapes are refused by the check of the model, with the number that is wrong.
        if model.check().is_err() {
            return Ok(());
        }
        let shape = model.shape_params();
        if params.abs_diff(shape) <= shape / 100 * ROUNDED_PERCENT {
            return Ok(());
        }
        let source = if config.is_some() { "the model's shape" } else { "the shape of the options" };
        Err(format!(
            "--params says {} weights, and {source} has {}. Leave out --params, or give the options of another shape.",
            Count(params),
            Count(shape)
        ))
    }
}

/// How far a number of weights may be from that of the shape, in percent: Qwen 2.5 with 7.6 billion weights is called 7B.
const ROUNDED_PERCENT: u64 = 10;

/// Returns the experts of a layer, if there are any.
fn experts(
    base: Option<Experts>,
    count: Option<u64>,
    active: Option<u64>,
    shared: Option<u64>,
) -> Result<Option<Experts>, String> {
    let Some(count) = count.or(base.map(|base| base.count)).filter(|count| *count > 0) else {
        return match active.or(shared) {
            Some(_) => Err("--active-experts and --shared-experts need --experts, such as --experts 8.".to_owned()),
            None => Ok(None),
        };
    };
    let Some(active) = active.or(base.map(|base| base.active)) else {
        return Err("--experts needs --active-experts, such as --active-experts 2.".to_owned());
    };
    let shared = shared.or(base.map(|base| base.shared)).unwrap_or(0);
    Ok(Some(Experts { count, active, shared }))
}
