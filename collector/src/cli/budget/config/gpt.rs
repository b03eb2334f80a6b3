//! GPT-2 and its relatives with a plain MLP and LayerNorm: GPT-NeoX, Falcon and Phi.

use budget::{Biases, Block, Details, Model};

use super::fields::Fields;

impl Fields<'_> {
    pub(super) fn gpt2(&mut self) -> Result<Model, String> {
        self.refuse_flag("add_cross_attention")?;
        let base = self.common()?;
        let ffn = self.count_or("ffn", &["n_inner"], base.hidden.saturating_mul(4))?;
        let positions = self.count("positions", &["n_positions", "max_position_embeddings"])?;
        let dropout = self.dropout("resid_pdrop", 0.1);
        let is_activation_composed = self.is_composed("activation_function", "gelu_new");
        let details = Details { is_qkv_fused: true, is_activation_composed, ..Details::NONE };
        let model = Model { ffn, positions, dropout, details, is_tied: self.tied(true)?, ..base };
        self.words(&model, None, None);
        Ok(model)
    }

    pub(super) fn gpt_neox(&mut self) -> Result<Model, String> {
        let base = self.common()?;
        let ffn = self.count("ffn", &["intermediate_size"])?;
        let (attention, bias_key) = self.flag("attention_bias", true)?;
        let (is_parallel, block_key) = self.flag("use_parallel_residual", true)?;
        let biases = Biases { qkv: attention, projection: attention, ..Biases::ALL };
        let block = if is_parallel { Block::Parallel } else { Block::Sequential };
        let dropout = self.dropout("hidden_dropout", 0.0);
        let details = Details { is_qkv_fused: true, ..Details::NONE };
        let model = Model { ffn, biases, block, dropout, details, is_tied: self.tied(false)?, ..base };
        self.words(&model, bias_key, block_key);
        Ok(model)
    }

    pub(super) fn falcon(&mut self) -> Result<Model, String> {
        let base = self.common()?;
        let ffn = self.count_or("ffn", &["ffn_hidden_size"], base.hidden.saturating_mul(4))?;
        let (is_new, _) = self.flag("new_decoder_architecture", false)?;
        let (is_multi_query, _) = self.flag("multi_query", true)?;
        let kv_heads = match (is_new, is_multi_query) {
            (true, _) => self.count_or("kv-heads", &["num_kv_heads", "n_head_kv"], base.heads)?,
            (false, true) => self.count_or("kv-heads", &[], 1)?,
            (false, false) => self.count_or("kv-heads", &[], base.heads)?,
        };
        let (has_biases, bias_key) = self.flag("bias", false)?;
        let (is_parallel, block_key) = self.flag("parallel_attn", true)?;
        let norms = match self.maybe(&["num_ln_in_parallel_attn"])? {
            Some((_, norms)) if is_new => norms,
            _ => 1 + u64::from(is_new),
        };
        let block = match (is_parallel, norms) {
            (false, _) => Block::Sequential,
            (true, 2) => Block::Parallel,
            (true, _) => Block::ParallelOneNorm,
        };
        let biases = if has_biases { Biases::ALL } else { Biases::NONE };
        let dropout = self.dropout("hidden_dropout", 0.0);
        let details = Details { is_qkv_fused: true, ..Details::NONE };
        let model = Model { ffn, kv_heads, biases, block, dropout, details, is_tied: self.tied(true)?, ..base };
        self.words(&model, bias_key, block_key);
        Ok(model)
    }

    pub(super) fn phi(&mut self) -> Result<Model, String> {
        self.refuse_flag("qk_layernorm")?;
        let base = self.common()?;
        let ffn = self.count("ffn", &["intermediate_size"])?;
        let kv_heads = self.count_or("kv-heads", &["num_key_value_heads"], base.heads)?;
        let biases = Biases { head: true, ..Biases::ALL };
        let block = Block::ParallelOneNorm;
        let dropout = self.dropout("resid_pdrop", 0.0);
        let details = Details { is_activation_composed: self.is_composed("hidden_act", "gelu_new"), ..Details::NONE };
        let model = Model { ffn, kv_heads, biases, block, dropout, details, is_tied: self.tied(false)?, ..base };
        self.words(&model, None, None);
        Ok(model)
    }
}
