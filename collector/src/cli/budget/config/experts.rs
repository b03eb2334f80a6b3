//! Models whose layers have many small experts: DeepSeek and gpt-oss.

use budget::{Attention, Biases, DenseLayers, Details, Experts, Latent, Model};

use super::fields::{Fields, gated};

impl Fields<'_> {
    /// The second and third DeepSeek, whose heads share latent vectors, and whose first layers have no experts.
    pub(super) fn deepseek(&mut self) -> Result<Model, String> {
        let base = self.common()?;
        let ffn = self.count("ffn", &["moe_intermediate_size"])?;
        let dense =
            DenseLayers { count: self.value(&["first_k_dense_replace"])?, ffn: self.value(&["intermediate_size"])? };
        let experts = Experts {
            count: self.count("experts", &["n_routed_experts"])?,
            active: self.count("active-experts", &["num_experts_per_tok"])?,
            shared: self.count_or("shared-experts", &["n_shared_experts"], 0)?,
        };
        let rope = self.value(&["qk_rope_head_dim"])?;
        let latent = Latent {
            query: self.maybe(&["q_lora_rank"])?.map_or(0, |(_, rank)| rank),
            key: self.value(&["kv_lora_rank"])?,
            rope,
            value: self.value(&["v_head_dim"])?,
        };
        let width = self.value(&["qk_nope_head_dim"])?.saturating_add(rope);
        self.take("head-dim", width, Some("qk_nope_head_dim"));
        let (attention, bias_key) = self.flag("attention_bias", false)?;
        let biases = Biases { qkv: attention, projection: attention, ..Biases::NONE };
        let details = Details { latent: Some(latent), dense: Some(dense), ..Details::NONE };
        let (head_dim, experts) = (Some(width), Some(experts));
        let model = Model { ffn, head_dim, experts, biases, details, is_tied: self.tied(false)?, ..gated(base) };
        self.words(&model, bias_key, None);
        Ok(model)
    }

    pub(super) fn gpt_oss(&mut self) -> Result<Model, String> {
        let base = self.common()?;
        let ffn = self.count("ffn", &["intermediate_size"])?;
        let kv_heads = self.count("kv-heads", &["num_key_value_heads"])?;
        let head_dim = Some(self.count_or("head-dim", &["head_dim"], 64)?);
        let count = self.count("experts", &["num_local_experts"])?;
        let active = self.count("active-experts", &["num_experts_per_tok", "experts_per_token"])?;
        let details =
            Details { has_router_bias: true, has_sinks: true, window: self.window(base.layers)?, ..Details::NONE };
        let experts = Some(Experts { count, active, shared: 0 });
        let is_tied = self.tied(false)?;
        let shape = Model { ffn, kv_heads, head_dim, experts, details, is_tied, ..gated(base) };
        // No kernel in tiles knows what its scores are compared with.
        let model = Model { biases: Biases::ALL, attention: Attention::Plain, ..shape };
        self.words(&model, None, None);
        Ok(model)
    }
}
