//! The shape of a model from a `config.json` of Hugging Face's Transformers.

use std::path::Path;

use budget::{
    Attention, Biases, Block, DenseLayers, Details, Experts, Implementation, Latent, Mlp, Model, Norm, Quantization,
    Window,
};
use serde::Serialize;
use serde_json::{Map, Value};
use trace::limits::MODEL_CONFIG_BYTES;

use crate::cli::read::bytes;

/// The model that is planned by default: a GPT whose embedding is its output layer.
pub(super) const GPT: Model =
    Model { implementation: Implementation::Transformers, ..Model::gpt(32, 4_096, 32, 32_000, 2_048, 1) };
/// The model types that can be read.
const TYPES: &str = "llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, gemma, gemma2, gemma3, gemma3_text, phi, phi3, \
                     deepseek_v2, deepseek_v3, gpt_oss, gpt2, gpt_neox, falcon";
/// The most characters of a file's text that an error repeats.
const QUOTED: usize = 64;

/// A model's shape, with what it was taken from.
#[derive(Debug)]
pub(super) struct ModelConfig {
    /// The `model_type` of the file.
    pub(super) model_type: String,
    /// The shape. Everything that a file does not say is as in a plan without one.
    pub(super) model: Model,
    /// The values that were taken, in order.
    pub(super) taken: Vec<Taken>,
}

/// A value that was taken from a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Taken {
    /// The option that overrides it, without the dashes.
    pub(super) option: &'static str,
    /// The value: a number or a word.
    pub(super) value: Value,
    /// The key in the file; `None` if the value is the model type's default.
    pub(super) key: Option<&'static str>,
}

/// Reads a file, with the format of its weights unless that is given. Errors don't name it.
pub(super) fn read(path: &Path, is_format_given: bool) -> Result<ModelConfig, String> {
    if path.is_dir() {
        return Err("this is a folder. Name the config.json in it.".to_owned());
    }
    parse(&bytes(path, MODEL_CONFIG_BYTES)?, is_format_given)
}

/// Reads the text of a file.
fn parse(text: &[u8], is_format_given: bool) -> Result<ModelConfig, String> {
    if text.len() > MODEL_CONFIG_BYTES {
        return Err(format!(
            "this file has more than {MODEL_CONFIG_BYTES} bytes, which no config.json has. Name the config.json of the model."
        ));
    }
    let object = match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err("this is JSON, but not an object. Name the config.json of the model.".to_owned()),
        Err(error) => return Err(format!("this is not JSON: {error}. Name the config.json of the model.")),
    };
    of_object(object, is_format_given)
}

/// Reads the content of a file.
pub(super) fn of_object(object: Map<String, Value>, is_format_given: bool) -> Result<ModelConfig, String> {
    let model_type = match object.get("model_type") {
        Some(Value::String(name)) => name.clone(),
        Some(_) => return Err(format!("\"model_type\" is not a text. Known are {TYPES}.")),
        None => return Err(format!("\"model_type\" is missing. Add it: one of {TYPES}.")),
    };
    // A model that reads pictures too has its language model apart.
    let (object, model_type) = match object.get("text_config") {
        Some(Value::Object(text)) => {
            let inner = text.get("model_type").and_then(Value::as_str).map_or(model_type, str::to_owned);
            (text.clone(), inner)
        }
        _ => (object, model_type),
    };
    let mut fields = Fields { object: &object, model_type: &model_type, taken: Vec::new() };
    let model = match model_type.as_str() {
        "llama" => fields.llama(),
        "mistral" | "mixtral" | "qwen2" => fields.mistral(),
        "gpt2" => fields.gpt2(),
        "gpt_neox" => fields.gpt_neox(),
        "falcon" => fields.falcon(),
        "phi" => fields.phi(),
        "phi3" => fields.phi3(),
        "qwen3" | "qwen3_moe" => fields.qwen3(),
        "gemma" | "gemma2" | "gemma3" | "gemma3_text" => fields.gemma(),
        "deepseek_v2" | "deepseek_v3" => fields.deepseek(),
        "gpt_oss" => fields.gpt_oss(),
        other => {
            let quoted: String = other.chars().take(QUOTED).collect();
            return Err(format!(
                "the model type {quoted:?} is unknown. Known are {TYPES}. Describe another model by options such as \
                 --hidden and --layers."
            ));
        }
    }?;
    let quantization = if is_format_given { None } else { fields.quantization()? };
    let model = Model { quantization, ..model };
    let taken = fields.taken;
    Ok(ModelConfig { model_type, model, taken })
}

/// The fields of a file, while they are read.
struct Fields<'a> {
    object: &'a Map<String, Value>,
    model_type: &'a str,
    taken: Vec<Taken>,
}

impl Fields<'_> {
    /// Returns the value of the first of the keys that the file has. `null` counts as absent.
    fn find(&self, keys: &[&'static str]) -> Option<(&'static str, &Value)> {
        keys.iter().find_map(|key| self.object.get(*key).filter(|value| !value.is_null()).map(|value| (*key, value)))
    }

    /// Notes a value.
    fn take(&mut self, option: &'static str, value: impl Into<Value>, key: Option<&'static str>) {
        self.taken.push(Taken { option, value: value.into(), key });
    }

    /// Returns a count, under any of its keys.
    fn maybe(&self, keys: &[&'static str]) -> Result<Option<(&'static str, u64)>, String> {
        let Some((key, value)) = self.find(keys) else { return Ok(None) };
        match value.as_u64() {
            Some(number) => Ok(Some((key, number))),
            None => {
                let quoted: String = value.to_string().chars().take(QUOTED).collect();
                Err(format!("{key:?} is {quoted}, and must be a whole number from 1 to 2^64. Correct it."))
            }
        }
    }

    /// Returns a count that the file must have.
    fn count(&mut self, option: &'static str, keys: &[&'static str]) -> Result<u64, String> {
        let Some((key, number)) = self.maybe(keys)? else {
            let key = keys.first().copied().unwrap_or_default();
            return Err(format!(
                "{key:?} is missing, which model type {} needs. Add it to the file, or describe the model by options \
                 without --config.",
                self.model_type
            ));
        };
        self.take(option, number, Some(key));
        Ok(number)
    }

    /// Returns a count that has a default.
    fn count_or(&mut self, option: &'static str, keys: &[&'static str], default: u64) -> Result<u64, String> {
        let (key, number) = self.maybe(keys)?.map_or((None, default), |(key, number)| (Some(key), number));
        self.take(option, number, key);
        Ok(number)
    }

    /// Returns a yes or no that has a default, and its key if the file has it.
    fn flag(&self, key: &'static str, default: bool) -> Result<(bool, Option<&'static str>), String> {
        match self.find(&[key]) {
            None => Ok((default, None)),
            Some((_, Value::Bool(flag))) => Ok((*flag, Some(key))),
            Some(_) => Err(format!("{key:?} must be true or false. Correct it.")),
        }
    }

    /// Refuses a model that has weights which the formulas leave out.
    fn refuse_flag(&self, key: &'static str) -> Result<(), String> {
        match self.flag(key, false)? {
            (true, _) => Err(format!("{key:?} is true, and the formulas leave out the weights of that.")),
            (false, _) => Ok(()),
        }
    }

    /// Takes what all types have in common.
    fn common(&mut self) -> Result<Model, String> {
        let layers = self.count("layers", &["num_hidden_layers", "n_layer"])?;
        let hidden = self.count("hidden", &["hidden_size", "n_embd"])?;
        let heads = self.count("heads", &["num_attention_heads", "n_head"])?;
        let vocab = self.count("vocab", &["vocab_size"])?;
        Ok(Model { layers, hidden, heads, kv_heads: heads, vocab, ..GPT })
    }

    /// Takes whether the output layer is the embedding.
    fn tied(&mut self, default: bool) -> Result<bool, String> {
        let (is_tied, key) = self.flag("tie_word_embeddings", default)?;
        self.take("embeddings", if is_tied { "tied" } else { "untied" }, key);
        Ok(is_tied)
    }

    /// Notes the parts of the shape that have words.
    fn words(&mut self, model: &Model, bias_key: Option<&'static str>, block_key: Option<&'static str>) {
        let bias = match model.biases {
            Biases { qkv: false, projection: false, mlp: false, .. } => "none",
            Biases { qkv: true, projection: false, mlp: false, .. } => "qkv",
            Biases { qkv: true, projection: true, mlp: false, .. } => "attention",
            Biases { qkv: false, projection: false, mlp: true, .. } => "mlp",
            _ => "all",
        };
        self.take("mlp", if model.mlp == Mlp::Gated { "gated" } else { "plain" }, None);
        let norm = match model.norm {
            Norm::Layer => "layer",
            Norm::Rms => "rms",
            Norm::GemmaRms => "gemma-rms",
        };
        self.take("norm", norm, None);
        self.take("bias", bias, bias_key);
        let block = match model.block {
            Block::Sequential => "sequential",
            Block::Parallel => "parallel",
            Block::ParallelOneNorm => "parallel-one-norm",
        };
        self.take("block", block, block_key);
    }

    fn llama(&mut self) -> Result<Model, String> {
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
    fn mistral(&mut self) -> Result<Model, String> {
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

    fn qwen3(&mut self) -> Result<Model, String> {
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

    /// The generations of Gemma, whose third has defaults for heads and vocabulary.
    fn gemma(&mut self) -> Result<Model, String> {
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

    fn phi3(&mut self) -> Result<Model, String> {
        let base = self.common()?;
        let ffn = self.count("ffn", &["intermediate_size"])?;
        let kv_heads = self.count_or("kv-heads", &["num_key_value_heads"], base.heads)?;
        let details = Details { is_qkv_fused: true, window: self.window(base.layers)?, ..Details::NONE };
        let is_tied = self.tied(false)?;
        let model = Model { ffn, kv_heads, biases: Biases::NONE, details, is_tied, ..gated(base) };
        self.words(&model, None, None);
        Ok(model)
    }

    /// The second and third DeepSeek, whose heads share latent vectors, and whose first layers have no experts.
    fn deepseek(&mut self) -> Result<Model, String> {
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

    fn gpt_oss(&mut self) -> Result<Model, String> {
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

    /// Returns the layers that see only the last tokens: those that the file lists, or as the model type has it.
    fn window(&self, layers: u64) -> Result<Option<Window>, String> {
        let Some((_, tokens)) = self.maybe(&["sliding_window"])?.filter(|(_, tokens)| *tokens > 0) else {
            return Ok(None);
        };
        let listed = self.object.get("layer_types").and_then(Value::as_array);
        let listed = listed.map(|list| list.iter().filter(|kind| *kind == "sliding_attention").count() as u64);
        let pattern = self.maybe(&["sliding_window_pattern"])?.map_or(6, |(_, pattern)| pattern.max(1));
        let usual = match self.model_type {
            "gemma2" | "gpt_oss" => layers.div_ceil(2),
            "gemma3" | "gemma3_text" => layers - layers / pattern,
            _ => layers,
        };
        Ok(Some(Window { tokens, layers: listed.unwrap_or(usual) }))
    }

    /// Returns a count that the file must have, and that no option overrides.
    fn value(&self, keys: &[&'static str]) -> Result<u64, String> {
        let key = keys.first().copied().unwrap_or_default();
        let found = self.maybe(keys)?.map(|(_, number)| number);
        found.ok_or_else(|| {
            format!("{key:?} is missing, which model type {} needs. Add it to the file.", self.model_type)
        })
    }

    /// Takes whether the file has dropout under a key.
    fn dropout(&mut self, key: &'static str, default: f64) -> bool {
        let found = self.find(&[key]).and_then(|(key, value)| value.as_f64().map(|share| (key, share)));
        let (key, share) = found.map_or((None, default), |(key, share)| (Some(key), share));
        self.take("dropout", if share > 0.0 { "yes" } else { "no" }, key);
        share > 0.0
    }

    /// Returns whether the activation function is written as several operations.
    fn is_composed(&self, key: &str, default: &str) -> bool {
        let name = self.object.get(key).and_then(Value::as_str).unwrap_or(default);
        matches!(name, "gelu_new" | "gelu_fast" | "gelu_python_tanh" | "quick_gelu")
    }

    fn gpt2(&mut self) -> Result<Model, String> {
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

    fn gpt_neox(&mut self) -> Result<Model, String> {
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

    fn falcon(&mut self) -> Result<Model, String> {
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

    fn phi(&mut self) -> Result<Model, String> {
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

    /// Takes the format of the weights (`quantization_config`), if the file has one.
    fn quantization(&mut self) -> Result<Option<Quantization>, String> {
        const KEY: &str = "quantization_config";
        let Some((_, value)) = self.find(&[KEY]) else { return Ok(None) };
        let Value::Object(object) = value else { return Err(format!("{KEY:?} is not an object. Correct it.")) };
        let (quantization, name) = super::quantization::read(object)?;
        self.take("quantize", name, Some(KEY));
        Ok(Some(quantization))
    }

    /// Takes the width of a head, if the file has one.
    fn head_dim(&mut self) -> Result<Option<u64>, String> {
        let found = self.maybe(&["head_dim"])?;
        if let Some((key, width)) = found {
            self.take("head-dim", width, Some(key));
        }
        Ok(found.map(|(_, width)| width))
    }
}

/// Returns the shape with a gated MLP and RMSNorm.
fn gated(base: Model) -> Model {
    Model { mlp: Mlp::Gated, norm: Norm::Rms, ..base }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes an object by `changes`, where `null` removes nothing.
    fn with(base: &str, changes: &str) -> String {
        let object = |text: &str| match serde_json::from_str(text) {
            Ok(Value::Object(object)) => object,
            other => panic!("{other:?}: {text}"),
        };
        let mut all = object(base);
        all.extend(object(changes));
        Value::Object(all).to_string()
    }

    const LLAMA: &str = r#"{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
        "vocab_size": 128256, "tie_word_embeddings": false, "attention_bias": false, "rope_theta": 500000.0}"#;
    const GPT2: &str = r#"{"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "n_ctx": 1024, "vocab_size": 50257, "n_inner": null}"#;
    const FALCON: &str = r#"{"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
        "num_attention_heads": 71, "vocab_size": 65024, "multi_query": true, "new_decoder_architecture": false,
        "parallel_attn": true, "bias": false, "alibi": false}"#;

    #[test]
    fn published_files_have_their_weights() {
        let mistral = with(LLAMA, r#"{"model_type": "mistral", "vocab_size": 32000}"#);
        let cases = [
            ("llama 3 8B", LLAMA.to_owned(), 8_030_261_248_u64),
            (
                "llama 2 7B",
                with(LLAMA, r#"{"num_key_value_heads": null, "intermediate_size": 11008, "vocab_size": 32000}"#),
                6_738_415_616,
            ),
            (
                "llama 3 70B",
                with(
                    LLAMA,
                    r#"{"hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "intermediate_size": 28672}"#,
                ),
                70_553_706_496,
            ),
            (
                "llama 3.2 1B, tied",
                with(
                    LLAMA,
                    r#"{"hidden_size": 2048, "num_hidden_layers": 16, "intermediate_size": 8192, "head_dim": 64, "tie_word_embeddings": true}"#,
                ),
                1_235_814_400,
            ),
            ("mistral 7B", mistral.clone(), 7_241_732_096),
            (
                "mistral nemo",
                with(
                    &mistral,
                    r#"{"hidden_size": 5120, "num_hidden_layers": 40, "head_dim": 128, "vocab_size": 131072}"#,
                ),
                12_247_782_400,
            ),
            (
                "mixtral 8x7B",
                with(&mistral, r#"{"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}"#),
                46_702_792_704,
            ),
            (
                "qwen 2 7B",
                with(
                    LLAMA,
                    r#"{"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
                        "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064}"#,
                ),
                7_615_616_512,
            ),
            ("gpt 2", GPT2.to_owned(), 124_439_808),
            (
                "pythia 6.9B",
                r#"{"model_type": "gpt_neox", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                    "intermediate_size": 16384, "vocab_size": 50432, "use_parallel_residual": true}"#
                    .to_owned(),
                6_857_302_016,
            ),
            ("falcon 7B", FALCON.to_owned(), 6_921_720_704),
            (
                "falcon 40B",
                with(
                    FALCON,
                    r#"{"hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8, "new_decoder_architecture": true}"#,
                ),
                41_303_293_952,
            ),
            (
                "phi 2",
                r#"{"model_type": "phi", "hidden_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 32,
                    "num_key_value_heads": null, "intermediate_size": 10240, "vocab_size": 51200}"#
                    .to_owned(),
                2_779_683_840,
            ),
        ];
        for (name, text, want) in cases {
            let config = parse(text.as_bytes(), false).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(config.model.check(), Ok(()), "{name}");
            assert_eq!(config.model.weights(), want, "{name}");
        }
    }

    #[test]
    fn what_was_taken_names_its_key_or_is_a_default() {
        let config = parse(with(GPT2, r#"{"tie_word_embeddings": true}"#).as_bytes(), false).unwrap();
        let taken = |option: &str| config.taken.iter().find(|taken| taken.option == option).cloned();
        assert_eq!(taken("hidden"), Some(Taken { option: "hidden", value: 768.into(), key: Some("n_embd") }));
        assert_eq!(taken("ffn"), Some(Taken { option: "ffn", value: 3_072.into(), key: None }));
        let tied = Taken { option: "embeddings", value: "tied".into(), key: Some("tie_word_embeddings") };
        assert_eq!(taken("embeddings"), Some(tied));
        assert_eq!(taken("head-dim"), None);
    }

    #[test]
    fn files_that_cannot_be_read_say_why() {
        let without = |key: &str| {
            let mut object: Map<String, Value> = serde_json::from_str(LLAMA).unwrap();
            object.remove(key);
            Value::Object(object).to_string()
        };
        let cases = [
            (String::new(), "this is not JSON"),
            ("[]".to_owned(), "not an object"),
            ("[".repeat(100_000), "this is not JSON"),
            ("\u{0}{}".to_owned(), "this is not JSON"),
            ("{}".to_owned(), "\"model_type\" is missing. Add it: one of llama, mistral"),
            (r#"{"model_type": 7}"#.to_owned(), "\"model_type\" is not a text"),
            (
                with(LLAMA, r#"{"model_type": "mamba"}"#),
                "the model type \"mamba\" is unknown. Known are llama, mistral",
            ),
            (without("hidden_size"), "\"hidden_size\" is missing, which model type llama needs. Add it to the file"),
            (without("intermediate_size"), "\"intermediate_size\" is missing"),
            (
                with(&without("num_key_value_heads"), r#"{"model_type": "mistral"}"#),
                "\"num_key_value_heads\" is missing, which model type mistral needs",
            ),
            (with(LLAMA, r#"{"model_type": "mixtral"}"#), "\"num_local_experts\" is missing"),
            (with(LLAMA, r#"{"hidden_size": 4096.5}"#), "\"hidden_size\" is 4096.5, and must be a whole number"),
            (with(LLAMA, r#"{"hidden_size": -1}"#), "\"hidden_size\" is -1, and must be a whole number"),
            (with(LLAMA, r#"{"vocab_size": "32000"}"#), "\"vocab_size\" is \"32000\", and must be a whole number"),
            (with(LLAMA, r#"{"head_dim": 1e400}"#.replace("1e400", "1e40").as_str()), "\"head_dim\" is 1e+40"),
            (with(LLAMA, r#"{"attention_bias": 1}"#), "\"attention_bias\" must be true or false"),
            (with(GPT2, r#"{"add_cross_attention": true}"#), "\"add_cross_attention\" is true"),
            (" ".repeat(MODEL_CONFIG_BYTES + 1), "this file has more than 1048576 bytes"),
        ];
        for (text, want) in cases {
            let error = parse(text.as_bytes(), false).map(|config| config.model).unwrap_err();
            assert!(error.contains(want), "{want} is not in {error}");
        }
    }

    #[test]
    fn impossible_numbers_are_found_by_the_check() {
        for changes in [
            r#"{"num_hidden_layers": 0}"#,
            r#"{"hidden_size": 18446744073709551615}"#,
            r#"{"num_attention_heads": 31}"#,
            r#"{"num_key_value_heads": 0}"#,
            r#"{"head_dim": 18446744073709551615}"#,
            r#"{"intermediate_size": 18446744073709551615}"#,
        ] {
            let config = parse(with(LLAMA, changes).as_bytes(), false).unwrap();
            assert!(config.model.check().is_err(), "{changes}");
        }
    }
}
