//! The shape of a model from a `config.json` of Hugging Face's Transformers.
//!
//! Each family of model types has a file: what its keys mean, and what they are by default.

mod experts;
mod fields;
mod gemma;
mod gpt;
mod llama;
mod positions;
mod quantization;

use std::path::Path;

use budget::{Implementation, Model};
use serde::Serialize;
use serde_json::{Map, Value};
use trace::limits::MODEL_CONFIG_BYTES;

use self::fields::Fields;
pub(super) use self::positions::Reach;
use crate::cli::read::bytes;

/// The model that is planned by default: a GPT whose embedding is its output layer.
pub(super) const GPT: Model =
    Model { implementation: Implementation::Transformers, ..Model::gpt(32, 4_096, 32, 32_000, 2_048, 1) };
/// The model types that can be read.
const TYPES: &str = "llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, gemma, gemma2, gemma3, gemma3_text, phi, phi3, \
                     deepseek_v2, deepseek_v3, gpt_oss, gpt2, gpt_neox, falcon";
/// The key of the format of the weights.
const QUANTIZATION: &str = "quantization_config";
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
    /// How far rotary positions reach.
    pub(super) reach: Option<Reach>,
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
    of_object(&object, is_format_given)
}

/// Reads the content of a file.
pub(super) fn of_object(object: &Map<String, Value>, is_format_given: bool) -> Result<ModelConfig, String> {
    let model_type = match object.get("model_type") {
        Some(Value::String(name)) => name.clone(),
        Some(_) => return Err(format!("\"model_type\" is not a text. Known are {TYPES}.")),
        None => return Err(format!("\"model_type\" is missing. Add it: one of {TYPES}.")),
    };
    // A model that reads pictures too has its language model apart.
    if let Some(Value::Object(text)) = object.get("text_config") {
        let inner = text.get("model_type").and_then(Value::as_str).map_or(model_type, str::to_owned);
        // The format of the weights is said for all parts of the model.
        let format = object.get(QUANTIZATION).map(|format| (QUANTIZATION.to_owned(), format.clone()));
        let text = format.into_iter().chain(text.clone()).collect();
        return of_language_model(&text, inner, is_format_given)
            .map_err(|error| format!("in \"text_config\": {error}"));
    }
    of_language_model(object, model_type, is_format_given)
}

/// Reads the content of a file, or what of it is about the language model.
fn of_language_model(
    object: &Map<String, Value>,
    model_type: String,
    is_format_given: bool,
) -> Result<ModelConfig, String> {
    let mut fields = Fields { object, model_type: &model_type, taken: Vec::new() };
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
    fields.check_layer_types(model.layers)?;
    let reach = fields.reach()?;
    let taken = fields.taken;
    Ok(ModelConfig { model_type, model, taken, reach })
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
            (
                with(LLAMA, r#"{"layer_types": ["full_attention", "linear_attention"]}"#),
                "\"layer_types\" has \"linear_attention\" for layer 1, and the formulas know full_attention and sliding_attention. \
                 Describe",
            ),
            (with(LLAMA, r#"{"layer_types": [7]}"#), "\"layer_types\" has 7 for layer 0"),
            (with(LLAMA, r#"{"layer_types": "full_attention"}"#), "\"layer_types\" is not a list"),
            (
                with(LLAMA, r#"{"layer_types": ["full_attention"]}"#),
                "\"layer_types\" lists 1 layer, and the model has 32. Correct one of them.",
            ),
            (
                with(LLAMA, r#"{"max_position_embeddings": 8192, "rope_scaling": []}"#),
                "\"rope_scaling\" is not an object",
            ),
            (
                format!(r#"{{"model_type": "gemma3", "text_config": {}}}"#, with(LLAMA, r#"{"vocab_size": 1.5}"#)),
                "in \"text_config\": \"vocab_size\" is 1.5, and must be a whole number",
            ),
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
