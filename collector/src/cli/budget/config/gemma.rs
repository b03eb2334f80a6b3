//! The generations of Gemma.

use budget::{Biases, Details, Model, Norm};

use super::GPT;
use super::fields::{Fields, gated};

impl Fields<'_> {
    /// The generations of Gemma, whose third has defaults for heads and vocabulary.
    pub(super) fn gemma(&mut self) -> Result<Model, String> {
        let is_third = self.model_type.starts_with("gemma3");
        let layers = self.count("layers", &["num_hidden_layers"])?;
        let hidden = self.count("hidden", &["hidden_size"])?;
        let ffn = self.count("ffn", &["intermediate_size"])?;
        let (heads, kv_heads, vocab) = match is_third {
            true => (
                self.count_or("heads", &["num_attention_heads"], 8)?,
                self.count_or("kv-heads", &["num_key_value_heads"], 4)?,
                self.count_or("vocab", &["vocab_size"], 262_208)?,
            ),
            false => (
                self.count("heads", &["num_attention_heads"])?,
                self.count("kv-heads", &["num_key_value_heads"])?,
                self.count("vocab", &["vocab_size"])?,
            ),
        };
        let head_dim = Some(self.count_or("head-dim", &["head_dim"], 256)?);
        let has_post_norms = self.model_type != "gemma";
        let window = if has_post_norms { self.window(layers)? } else { None };
        let details = Details { has_head_norms: is_third, has_post_norms, window, ..Details::NONE };
        let is_tied = self.tied(true)?;
        let shape = Model { layers, hidden, heads, kv_heads, vocab, head_dim, ffn, details, is_tied, ..gated(GPT) };
        let model = Model { norm: Norm::GemmaRms, biases: Biases::NONE, ..shape };
        self.words(&model, None, None);
        Ok(model)
    }
}
