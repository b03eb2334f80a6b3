//! The `quantization_config` of a `config.json`: as bitsandbytes writes it, MXFP4 of gpt-oss, and FP8 in blocks.

use budget::{Block8, Quantization};
use serde_json::{Map, Value};

use super::QUOTED;

/// The only linear layer that bitsandbytes may leave out: no formula counts it as quantised.
const HEAD: &str = "lm_head";
/// Modules that no format stores in fewer bits, beside norms.
const NEVER_STORED: [&str; 5] = [HEAD, "embed_tokens", "gate", "router", "shared_expert_gate"];

/// Reads the format of the weights, and its name.
pub(super) fn read(object: &Map<String, Value>) -> Result<(Quantization, &'static str), String> {
    match find(object, "quant_method").map(Value::as_str) {
        None | Some(Some("bitsandbytes")) => bitsandbytes(object),
        Some(Some("mxfp4")) => {
            not_skipped(object, "modules_to_not_convert", |name| name == "self_attn" || is_never_stored(name))?;
            not_dequantized(object)?;
            Ok((Quantization::Mxfp4, Quantization::Mxfp4.name()))
        }
        Some(Some("fp8")) => {
            not_skipped(object, "modules_to_not_convert", is_never_stored)?;
            not_dequantized(object)?;
            let quantization = Quantization::Fp8(block(object)?);
            Ok((quantization, quantization.name()))
        }
        Some(_) => problem(object, "quant_method", "and the formulas know bitsandbytes, mxfp4 and fp8."),
    }
}

/// Reads a format of bitsandbytes, and its name.
fn bitsandbytes(object: &Map<String, Value>) -> Result<(Quantization, &'static str), String> {
    let flag = |key: &str| flag(object, key);
    not_skipped(object, "llm_int8_skip_modules", |name| name == HEAD)?;
    match (flag("load_in_8bit")?, flag("load_in_4bit")?) {
        (true, false) if flag("llm_int8_has_fp16_weight")? => {
            problem(object, "llm_int8_has_fp16_weight", "and such weights have 16 bits.")
        }
        (true, false) => Ok((Quantization::Int8, "int8")),
        (false, true) => {
            // Both have 4 bits and the same constants.
            let is_nf4 = match find(object, "bnb_4bit_quant_type").map(Value::as_str) {
                None | Some(Some("fp4")) => false,
                Some(Some("nf4")) => true,
                Some(_) => return problem(object, "bnb_4bit_quant_type", "and known are nf4 and fp4."),
            };
            Ok(match (flag("bnb_4bit_use_double_quant")?, is_nf4) {
                (true, true) => (Quantization::Nf4Double, "nf4-double"),
                (true, false) => (Quantization::Nf4Double, "fp4-double"),
                (false, true) => (Quantization::Nf4, "nf4"),
                (false, false) => (Quantization::Nf4, "fp4"),
            })
        }
        (true, true) => {
            Err("\"quantization_config\" has both load_in_8bit and load_in_4bit, so the format is ambiguous. \
                             Choose one with --quantize."
                .to_owned())
        }
        (false, false) => {
            Err("\"quantization_config\" has neither load_in_8bit nor load_in_4bit. Choose a format with \
                               --quantize."
                .to_owned())
        }
    }
}

/// Reads the blocks that share a scale in FP8. Transformers' default are those of DeepSeek-V3.
fn block(object: &Map<String, Value>) -> Result<Block8, String> {
    const KEY: &str = "weight_block_size";
    let Some(value) = object.get(KEY) else { return Ok(Block8::USUAL) };
    let sides: Option<Vec<u64>> = value.as_array().and_then(|sides| sides.iter().map(Value::as_u64).collect());
    match sides.as_deref() {
        Some([rows, columns]) if *rows > 0 && *columns > 0 => Ok(Block8 { rows: *rows, columns: *columns }),
        _ => problem(object, KEY, "and the formulas know blocks of rows and columns, such as [128, 128]."),
    }
}

/// Returns the value of a key. `null` counts as absent.
fn find<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

/// Returns a yes or no, which may be under a private name.
fn flag(object: &Map<String, Value>, key: &str) -> Result<bool, String> {
    let private = format!("_{key}");
    let key = if find(object, key).is_some() { key } else { &private };
    match find(object, key) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => problem(object, key, "which is not true or false."),
    }
}

/// Refuses a file that leaves modules unquantised which the formulas count as quantised. Only the last part of a module's path
/// is `left_out`'s.
fn not_skipped(object: &Map<String, Value>, key: &str, left_out: impl Fn(&str) -> bool) -> Result<(), String> {
    let Some(skipped) = find(object, key) else { return Ok(()) };
    let is_known = |name: &Value| name.as_str().is_some_and(|name| left_out(name.rsplit('.').next().unwrap_or(name)));
    match skipped.as_array().is_some_and(|names| names.iter().all(is_known)) {
        true => Ok(()),
        false => problem(object, key, "and the formulas quantise all linear layers of the format but lm_head."),
    }
}

/// Refuses weights that are loaded in 16 bits.
fn not_dequantized(object: &Map<String, Value>) -> Result<(), String> {
    match flag(object, "dequantize")? {
        true => problem(object, "dequantize", "and such weights have 16 bits."),
        false => Ok(()),
    }
}

fn is_never_stored(name: &str) -> bool {
    NEVER_STORED.contains(&name) || name.ends_with("norm")
}

/// Returns the error about a key's value.
fn problem<T>(object: &Map<String, Value>, key: &str, rest: &str) -> Result<T, String> {
    let quoted: String = object.get(key).unwrap_or(&Value::Null).to_string().chars().take(QUOTED).collect();
    Err(format!("\"quantization_config\" has {key:?}: {quoted}, {rest} Override it with --quantize."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_or_refused() {
        let read = |text: &str| {
            let object: Map<String, Value> = serde_json::from_str(text).unwrap();
            read(&object)
        };
        let nf4 = r#"{"quant_method": "bitsandbytes", "load_in_8bit": false, "load_in_4bit": true, "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_use_double_quant": true, "llm_int8_skip_modules": null, "bnb_4bit_compute_dtype": "bfloat16"}"#;
        assert_eq!(read(nf4), Ok((Quantization::Nf4Double, "nf4-double")));
        assert_eq!(read(r#"{"load_in_4bit": true}"#), Ok((Quantization::Nf4, "fp4")));
        assert_eq!(read(r#"{"_load_in_8bit": true}"#), Ok((Quantization::Int8, "int8")));
        let skips = r#"{"load_in_8bit": true, "llm_int8_skip_modules": ["lm_head"]}"#;
        assert_eq!(read(skips), Ok((Quantization::Int8, "int8")));
        let gpt_oss = r#"{"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
            "model.embed_tokens", "lm_head"]}"#;
        assert_eq!(read(gpt_oss), Ok((Quantization::Mxfp4, "mxfp4")));
        let fp8 = |rows, columns| Ok((Quantization::Fp8(Block8 { rows, columns }), "fp8"));
        let deepseek = r#"{"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}"#;
        assert_eq!(read(deepseek), fp8(128, 128));
        let qwen = r#"{"quant_method": "fp8", "weight_block_size": [64, 128],
            "modules_to_not_convert": ["lm_head", "model.layers.0.input_layernorm", "model.layers.0.mlp.gate"]}"#;
        assert_eq!(read(qwen), fp8(64, 128));
        assert_eq!(read(r#"{"quant_method": "fp8"}"#), fp8(128, 128));
        let cases = [
            (
                r#"{"quant_method": "gptq", "bits": 4}"#,
                "\"quant_method\": \"gptq\", and the formulas know bitsandbytes, mxfp4 and fp8",
            ),
            (r#"{"load_in_8bit": true, "load_in_4bit": true}"#, "ambiguous"),
            ("{}", "neither load_in_8bit nor load_in_4bit"),
            (r#"{"load_in_4bit": "yes"}"#, "not true or false"),
            (r#"{"load_in_4bit": true, "bnb_4bit_quant_type": "int4"}"#, "known are nf4 and fp4"),
            (
                r#"{"load_in_8bit": true, "llm_int8_skip_modules": ["q_proj"]}"#,
                "all linear layers of the format but lm_head",
            ),
            (
                r#"{"quant_method": "fp8", "weight_block_size": [128]}"#,
                "blocks of rows and columns, such as [128, 128]",
            ),
            (r#"{"quant_method": "fp8", "weight_block_size": [0, 128]}"#, "has \"weight_block_size\": [0,128]"),
            (r#"{"quant_method": "fp8", "weight_block_size": null}"#, "has \"weight_block_size\": null"),
            (
                r#"{"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.self_attn.q_proj"]}"#,
                "quantise all linear layers of the format but lm_head",
            ),
            (r#"{"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.mlp.experts"]}"#, "but lm_head"),
            (r#"{"quant_method": "mxfp4", "dequantize": true}"#, "such weights have 16 bits"),
            (r#"{"load_in_8bit": true, "llm_int8_has_fp16_weight": true}"#, "such weights have 16 bits"),
        ];
        for (text, want) in cases {
            let error = read(text).unwrap_err();
            assert!(error.contains(want) && error.contains("--quantize"), "{want} is not in {error}");
        }
    }
}
