//! The programs of the workloads, one in each file, with their parameters.

pub(super) mod alternating;
pub(super) mod checkpoint_save;
pub(super) mod kv_serving;
pub(super) mod leak;
pub(super) mod model_switch;
pub(super) mod recovery;
pub(super) mod resnet_sweep;
pub(super) mod transformer;
pub(super) mod variable_length;

use shared::budget::{Attention, Biases, Block, Checkpointing, Mlp, Model, Norm, Optimizer, Precision};

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// Returns a GPT in mixed precision with Adam and tiled attention, without dropout. Its embedding is also its output layer.
const fn gpt(layers: u64, hidden: u64, heads: u64, vocab: u64, seq: u64, batch: u64) -> Model {
    Model {
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
    }
}
