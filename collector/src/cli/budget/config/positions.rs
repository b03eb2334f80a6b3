//! How far a model's positions reach: what it was trained with, and what scaling of its rotary positions adds.

use serde::Serialize;
use serde_json::{Map, Value};

use super::QUOTED;
use super::fields::Fields;

/// How far the rotary positions of a model reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in crate::cli::budget) struct Reach {
    /// The tokens that the model reads, with scaling.
    pub(in crate::cli::budget) tokens: u64,
    /// The tokens of a sequence before positions were scaled.
    pub(in crate::cli::budget) unscaled: u64,
    /// The kind of scaling, such as `llama3 × 8`; `None` if positions are not scaled.
    pub(in crate::cli::budget) scaling: Option<String>,
}

/// The settings of scaled positions, with their key.
type Settings<'a> = (&'static str, &'a Map<String, Value>);

impl Fields<'_> {
    /// Returns how far the positions reach, if the file tells.
    ///
    /// Where scaling names the tokens that it starts from, `max_position_embeddings` is what it leads to. Otherwise the factor
    /// multiplies them, but in Gemma, whose files have the product.
    pub(super) fn reach(&self) -> Result<Option<Reach>, String> {
        let Some((_, most)) = self.maybe(&["max_position_embeddings"])?.filter(|(_, most)| *most > 0) else {
            return Ok(None);
        };
        let plain = Reach { tokens: most, unscaled: most, scaling: None };
        let Some((key, object)) = self.scaling()? else { return Ok(Some(plain)) };
        let kind = object.get("rope_type").or(object.get("type")).and_then(Value::as_str).unwrap_or("default");
        if kind == "default" {
            return Ok(Some(plain));
        }
        let factor = match object.get("factor").filter(|factor| !factor.is_null()) {
            None => None,
            Some(value) => match value.as_f64().filter(|factor| *factor > 0.0 && factor.is_finite()) {
                Some(factor) => Some(factor),
                None => {
                    let quoted: String = value.to_string().chars().take(QUOTED).collect();
                    return Err(format!(
                        "{key:?} has \"factor\": {quoted}, which must be a number above 0. Correct it."
                    ));
                }
            },
        };
        let original = object.get("original_max_position_embeddings").and_then(Value::as_u64);
        let original = original.or(self.maybe(&["original_max_position_embeddings"])?.map(|(_, tokens)| tokens));
        let times = |tokens: u64, factor: f64| (tokens as f64 * factor).round() as u64;
        let (unscaled, tokens) = match (original, factor) {
            (Some(original), factor) => (original, most.max(times(original, factor.unwrap_or(1.0)))),
            (None, Some(factor)) if self.model_type.starts_with("gemma") => (times(most, 1.0 / factor), most),
            (None, factor) => (most, times(most, factor.unwrap_or(1.0))),
        };
        // A file's text must not reach a terminal as it is.
        let kind: String = kind.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(QUOTED).collect();
        let scaling = factor.map_or(kind.clone(), |factor| format!("{kind} × {factor}"));
        Ok(Some(Reach { tokens, unscaled, scaling: Some(scaling) }))
    }

    /// Returns the settings of scaled positions, with their key. They may be apart for layers that see all tokens.
    fn scaling(&self) -> Result<Option<Settings<'_>>, String> {
        let Some((key, value)) = self.find(&["rope_scaling", "rope_parameters"]) else { return Ok(None) };
        match value.get("full_attention").unwrap_or(value) {
            Value::Object(object) => Ok(Some((key, object))),
            _ => Err(format!("{key:?} is not an object. Correct it, or remove it.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_says_what_the_positions_are() {
        let reach = |model_type: &str, text: &str| {
            let object: Map<String, Value> = serde_json::from_str(text).unwrap();
            let reach = Fields { object: &object, model_type, taken: Vec::new() }.reach()?;
            Ok::<_, String>(reach.map(|reach| (reach.unscaled, reach.tokens, reach.scaling)))
        };
        let scaled = |unscaled, tokens, scaling: &str| Ok(Some((unscaled, tokens, Some(scaling.to_owned()))));
        let cases = [
            ("llama", "{}", Ok(None)),
            ("llama", r#"{"max_position_embeddings": 8192, "rope_scaling": null}"#, Ok(Some((8_192, 8_192, None)))),
            (
                "llama",
                r#"{"max_position_embeddings": 8192, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}"#,
                Ok(Some((8_192, 8_192, None))),
            ),
            (
                // Llama 3.1.
                "llama",
                r#"{"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
                    "original_max_position_embeddings": 8192}}"#,
                scaled(8_192, 131_072, "llama3 × 8"),
            ),
            (
                // Qwen 2.5, with what its model card adds for long texts.
                "qwen2",
                r#"{"max_position_embeddings": 32768, "rope_scaling": {"type": "yarn", "factor": 4.0,
                    "original_max_position_embeddings": 32768}}"#,
                scaled(32_768, 131_072, "yarn × 4"),
            ),
            (
                "llama",
                r#"{"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2.5}}"#,
                scaled(4_096, 10_240, "linear × 2.5"),
            ),
            (
                "phi3",
                r#"{"max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
                    "rope_scaling": {"type": "longrope", "short_factor": [1.0]}}"#,
                scaled(4_096, 131_072, "longrope"),
            ),
            (
                "gemma3_text",
                r#"{"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}"#,
                scaled(16_384, 131_072, "linear × 8"),
            ),
            (
                "llama",
                r#"{"max_position_embeddings": 8192, "rope_scaling": 8}"#,
                Err("\"rope_scaling\" is not an object. Correct it, or remove it.".to_owned()),
            ),
            (
                "llama",
                r#"{"max_position_embeddings": 8192, "rope_scaling": {"type": "linear", "factor": "2"}}"#,
                Err("\"rope_scaling\" has \"factor\": \"2\", which must be a number above 0. Correct it.".to_owned()),
            ),
        ];
        for (model_type, text, want) in cases {
            assert_eq!(reach(model_type, text), want, "{text}");
        }
    }
}
