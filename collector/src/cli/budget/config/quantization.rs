//! The `quantization_config` of a `config.json`, as bitsandbytes writes it.

use budget::Quantization;
use serde_json::{Map, Value};

/// The most characters of a file's text that an error repeats.
const QUOTED: usize = 64;
/// The only linear layer that may be left out: no formula counts it as quantised.
const HEAD: &str = "lm_head";

/// Reads the format of the weights, and its name.
pub(super) fn read(object: &Map<String, Value>) -> Result<(Quantization, &'static str), String> {
    let quoted = |value: &Value| value.to_string().chars().take(QUOTED).collect::<String>();
    let problem = |key: &str, value: &Value, rest: &str| {
        Err(format!("\"quantization_config\" has {key:?}: {}, {rest} Override it with --quantize.", quoted(value)))
    };
    let find = |key: &str| object.get(key).filter(|value| !value.is_null());
    let flag = |key: &str| match (find(key), find(&format!("_{key}"))) {
        (Some(Value::Bool(flag)), _) | (None, Some(Value::Bool(flag))) => Ok(*flag),
        (None, None) => Ok(false),
        (Some(value), _) | (None, Some(value)) => problem(key, value, "which is not true or false.").map(|()| false),
    };
    if let Some(method) = find("quant_method").filter(|method| *method != "bitsandbytes") {
        return problem("quant_method", method, "and the formulas know bitsandbytes.")
            .map(|()| (Quantization::Int8, ""));
    }
    if let Some(skipped) = find("llm_int8_skip_modules") {
        let is_head = skipped.as_array().is_some_and(|names| names.iter().all(|name| name == HEAD));
        if !is_head {
            let rest = "and the formulas quantise all linear layers but lm_head.";
            return problem("llm_int8_skip_modules", skipped, rest).map(|()| (Quantization::Int8, ""));
        }
    }
    match (flag("load_in_8bit")?, flag("load_in_4bit")?) {
        (true, false) if flag("llm_int8_has_fp16_weight")? => {
            let rest = "and such weights have 16 bits.";
            problem("llm_int8_has_fp16_weight", &Value::Bool(true), rest).map(|()| (Quantization::Int8, ""))
        }
        (true, false) => Ok((Quantization::Int8, "int8")),
        (false, true) => {
            // Both have 4 bits and the same constants.
            let is_nf4 = match find("bnb_4bit_quant_type").map(Value::as_str) {
                None | Some(Some("fp4")) => false,
                Some(Some("nf4")) => true,
                Some(_) => {
                    let value = find("bnb_4bit_quant_type").unwrap_or(&Value::Null);
                    return problem("bnb_4bit_quant_type", value, "and known are nf4 and fp4.")
                        .map(|()| (Quantization::Nf4, ""));
                }
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
        let cases = [
            (
                r#"{"quant_method": "gptq", "bits": 4}"#,
                "\"quant_method\": \"gptq\", and the formulas know bitsandbytes",
            ),
            (r#"{"load_in_8bit": true, "load_in_4bit": true}"#, "ambiguous"),
            ("{}", "neither load_in_8bit nor load_in_4bit"),
            (r#"{"load_in_4bit": "yes"}"#, "not true or false"),
            (r#"{"load_in_4bit": true, "bnb_4bit_quant_type": "int4"}"#, "known are nf4 and fp4"),
            (r#"{"load_in_8bit": true, "llm_int8_skip_modules": ["q_proj"]}"#, "all linear layers but lm_head"),
            (r#"{"load_in_8bit": true, "llm_int8_has_fp16_weight": true}"#, "such weights have 16 bits"),
        ];
        for (text, want) in cases {
            let error = read(text).unwrap_err();
            assert!(error.contains(want) && error.contains("--quantize"), "{want} is not in {error}");
        }
    }
}
