//! The values of a file: what each key may hold, and what is noted of it.

use budget::{Biases, Block, Mlp, Model, Norm, Quantization, Window};
use serde_json::{Map, Value};
use trace::units::counted;

use super::{GPT, QUANTIZATION, QUOTED, Taken, quantization};

/// The kinds of attention that a layer may have.
const LAYER_TYPES: [&str; 2] = ["full_attention", "sliding_attention"];

/// The fields of a file, while they are read.
pub(super) struct Fields<'a> {
    pub(super) object: &'a Map<String, Value>,
    pub(super) model_type: &'a str,
    pub(super) taken: Vec<Taken>,
}

impl Fields<'_> {
    /// Returns the value of the first of the keys that the file has. `null` counts as absent.
    pub(super) fn find(&self, keys: &[&'static str]) -> Option<(&'static str, &Value)> {
        keys.iter().find_map(|key| self.object.get(*key).filter(|value| !value.is_null()).map(|value| (*key, value)))
    }

    /// Notes a value.
    pub(super) fn take(&mut self, option: &'static str, value: impl Into<Value>, key: Option<&'static str>) {
        self.taken.push(Taken { option, value: value.into(), key });
    }

    /// Returns a count, under any of its keys.
    pub(super) fn maybe(&self, keys: &[&'static str]) -> Result<Option<(&'static str, u64)>, String> {
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
    pub(super) fn count(&mut self, option: &'static str, keys: &[&'static str]) -> Result<u64, String> {
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
    pub(super) fn count_or(
        &mut self,
        option: &'static str,
        keys: &[&'static str],
        default: u64,
    ) -> Result<u64, String> {
        let (key, number) = self.maybe(keys)?.map_or((None, default), |(key, number)| (Some(key), number));
        self.take(option, number, key);
        Ok(number)
    }

    /// Returns a yes or no that has a default, and its key if the file has it.
    pub(super) fn flag(&self, key: &'static str, default: bool) -> Result<(bool, Option<&'static str>), String> {
        match self.find(&[key]) {
            None => Ok((default, None)),
            Some((_, Value::Bool(flag))) => Ok((*flag, Some(key))),
            Some(_) => Err(format!("{key:?} must be true or false. Correct it.")),
        }
    }

    /// Refuses a model that has weights which the formulas leave out.
    pub(super) fn refuse_flag(&self, key: &'static str) -> Result<(), String> {
        match self.flag(key, false)? {
            (true, _) => Err(format!("{key:?} is true, and the formulas leave out the weights of that.")),
            (false, _) => Ok(()),
        }
    }

    /// Refuses a list of the layers' kinds of attention that the formulas don't know, or that is of another number of layers.
    pub(super) fn check_layer_types(&self, layers: u64) -> Result<(), String> {
        const KEY: &str = "layer_types";
        let Some((_, value)) = self.find(&[KEY]) else { return Ok(()) };
        let Value::Array(list) = value else { return Err(format!("{KEY:?} is not a list. Correct it, or remove it.")) };
        if let Some((at, kind)) =
            list.iter().enumerate().find(|(_, kind)| !LAYER_TYPES.iter().any(|known| **kind == *known))
        {
            let quoted: String = kind.to_string().chars().take(QUOTED).collect();
            return Err(format!(
                "{KEY:?} has {quoted} for layer {at}, and the formulas know {}. Describe a model that is close by options \
                 without --config.",
                LAYER_TYPES.join(" and ")
            ));
        }
        match list.len() as u64 {
            listed if listed == layers => Ok(()),
            listed => Err(format!(
                "{KEY:?} lists {}, and the model has {layers}. Correct one of them.",
                counted(listed, "layer")
            )),
        }
    }

    /// Returns a count that the file must have, and that no option overrides.
    pub(super) fn value(&self, keys: &[&'static str]) -> Result<u64, String> {
        let key = keys.first().copied().unwrap_or_default();
        let found = self.maybe(keys)?.map(|(_, number)| number);
        found.ok_or_else(|| {
            format!("{key:?} is missing, which model type {} needs. Add it to the file.", self.model_type)
        })
    }

    /// Takes what all types have in common.
    pub(super) fn common(&mut self) -> Result<Model, String> {
        let layers = self.count("layers", &["num_hidden_layers", "n_layer"])?;
        let hidden = self.count("hidden", &["hidden_size", "n_embd"])?;
        let heads = self.count("heads", &["num_attention_heads", "n_head"])?;
        let vocab = self.count("vocab", &["vocab_size"])?;
        Ok(Model { layers, hidden, heads, kv_heads: heads, vocab, ..GPT })
    }

    /// Takes whether the output layer is the embedding.
    pub(super) fn tied(&mut self, default: bool) -> Result<bool, String> {
        let (is_tied, key) = self.flag("tie_word_embeddings", default)?;
        self.take("embeddings", if is_tied { "tied" } else { "untied" }, key);
        Ok(is_tied)
    }

    /// Notes the parts of the shape that have words.
    pub(super) fn words(&mut self, model: &Model, bias_key: Option<&'static str>, block_key: Option<&'static str>) {
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

    /// Returns the layers that see only the last tokens: those that the file lists, or as the model type has it.
    pub(super) fn window(&self, layers: u64) -> Result<Option<Window>, String> {
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

    /// Takes whether the file has dropout under a key.
    pub(super) fn dropout(&mut self, key: &'static str, default: f64) -> bool {
        let found = self.find(&[key]).and_then(|(key, value)| value.as_f64().map(|share| (key, share)));
        let (key, share) = found.map_or((None, default), |(key, share)| (Some(key), share));
        self.take("dropout", if share > 0.0 { "yes" } else { "no" }, key);
        share > 0.0
    }

    /// Returns whether the activation function is written as several operations.
    pub(super) fn is_composed(&self, key: &str, default: &str) -> bool {
        let name = self.object.get(key).and_then(Value::as_str).unwrap_or(default);
        matches!(name, "gelu_new" | "gelu_fast" | "gelu_python_tanh" | "quick_gelu")
    }

    /// Takes the format of the weights (`quantization_config`), if the file has one.
    pub(super) fn quantization(&mut self) -> Result<Option<Quantization>, String> {
        const KEY: &str = QUANTIZATION;
        let Some((_, value)) = self.find(&[KEY]) else { return Ok(None) };
        let Value::Object(object) = value else { return Err(format!("{KEY:?} is not an object. Correct it.")) };
        let (quantization, name) = quantization::read(object)?;
        self.take("quantize", name, Some(KEY));
        Ok(Some(quantization))
    }

    /// Takes the width of a head, if the file has one.
    pub(super) fn head_dim(&mut self) -> Result<Option<u64>, String> {
        let found = self.maybe(&["head_dim"])?;
        if let Some((key, width)) = found {
            self.take("head-dim", width, Some(key));
        }
        Ok(found.map(|(_, width)| width))
    }
}

/// Returns the shape with a gated MLP and RMSNorm.
pub(super) fn gated(base: Model) -> Model {
    Model { mlp: Mlp::Gated, norm: Norm::Rms, ..base }
}
