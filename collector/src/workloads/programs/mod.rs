//! One story a file: what can be chosen, and the program.

pub(super) mod alternating;
pub(super) mod checkpoint_save;
pub(super) mod kv_serving;
pub(super) mod leak;
pub(super) mod model_switch;
pub(super) mod recovery;
pub(super) mod resnet_sweep;
pub(super) mod transformer;
pub(super) mod variable_length;

use shared::budget::{Attention, Checkpointing, Model, Optimizer, Precision};

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// A GPT in mixed precision with Adam and attention in tiles, without dropout.
const fn gpt(layers: u64, hidden: u64, heads: u64, vocab: u64, seq: u64, batch: u64) -> Model {
    Model {
        layers,
        hidden,
        heads,
        kv_heads: heads,
        ffn: 4 * hidden,
        vocab,
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
