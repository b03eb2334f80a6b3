//! Llama and those that differ from it in little: Mistral, Mixtral, Qwen and Phi 3.

use budget::{Biases, Details, Experts, Model};
use serde_json::Value;

use super::fields::{Fields, gated};

impl Fields<'_> {
    pub(super) fn llama(&mut self) -> Result<Model, String> {
        let base = self.common()?;
        let ffn = self.count("ffn", &["intermediate_size"])?;
        let kv_heads = self.count_or("kv-heads", &["num_key_value_heads"], base.heads)?;
        let head_dim = self.head_dim()?;
        let ((attention, key), (mlp, mlp_key)) = (self.flag("attention_bias", false)?, self.flag("mlp_bias", false)?);
        let biases = Biases { qkv: attention, projection: attention, mlp, head: false };
        let model = Model { ffn, kv_heads, head_dim, biases, is_tied: self.tied(false)?, ..gated(base) };
        self.words(&model, key.or(mlp_key), None);
        Ok(model)
    }

    /// Mistral, Mixtral and Qwen 2, whose defaults for shared keys differ: the file must say how many there are.
    pub(super) fn mistral(&mut self) -> Result<Model, String> {
        let base = self.common()?;
        let ffn = self.count("ffn", &["intermediate_size"])?;
        // An explicit null stands for unshared keys.
        let kv_heads = match self.object.get("num_key_value_heads") {
            Some(Value::Null) => self.count_or("kv-heads", &[], base.heads)?,
            _ => self.count("kv-heads", &["num_key_value_heads"])?,
        };
        let head_dim = self.head_dim()?;
        let biases = Biases { qkv: self.model_type == "qwen2", ..Biases::NONE };
        let experts = if self.model_type == "mixtral" {
            let count = self.count("experts", &["num_local_experts"])?;
            let active = self.count("active-experts", &["num_experts_per_tok"])?;
            Some(Experts { count, active, shared: 0 })
        } else {
            None
        };
        let window = if self.model_type == "qwen2" { None } else { self.window(base.layers)? };
        let details = Details { window, ..Details::NONE };
        let model =
            Model { ffn, kv_heads, head_dim, biases, experts, details, is_tied: self.tied(false)?, ..gated(base) };
        self.words(&model, None, None);
        Ok(model)
    }

    pub(super) fn qwen3(&mut self) -> Result<Model, String> {
        let base = self.common()?;
        let kv_heads = self.count("kv-heads", &["num_key_value_heads"])?;
        let head_dim = self.count_or("head-dim", &["head_dim"], 128)?;
        let (attention, bias_key) = self.flag("attention_bias", false)?;
        let (ffn, experts) = match self.model_type {
            "qwen3" => (self.count("ffn", &["intermediate_size"])?, None),
            _ => {
                let count = self.count("experts", &["num_experts"])?;
                let active = self.count("active-experts", &["num_experts_per_tok"])?;
                let ffn = self.count("ffn", &["moe_intermediate_size"])?;
                (ffn, Some(Experts { count, active, shared: 0 }))
            }
        };
        let biases = Biases { qkv: attention, projection: attention, ..Biases::NONE };
        let details = Details { has_head_norms: true, ..Details::NONE };
        let (is_tied, head_dim) = (self.tied(false)?, Some(head_dim));
        let model = Model { ffn, kv_heads, head_dim, biases, experts, details, is_tied, ..gated(base) };
        self.words(&model, bias_key, None);
        Ok(model)
    }

    pub(super) fn phi3(&mut self) -> Result<Model, String> {
        let base = self.common()?;
        let ffn = self.count("ffn", &["intermediate_size"])?;
        let kv_heads = self.count_or("kv-heads", &["num_key_value_heads"], base.heads)?;
        let details = Details { is_qkv_fused: true, window: self.window(base.layers)?, ..Details::NONE };
        let is_tied = self.tied(false)?;
        let model = Model { ffn, kv_heads, biases: Biases::NONE, details, is_tied, ..gated(base) };
        self.words(&model, None, None);
        Ok(model)
    }
}
