//! Models by name: their published shapes.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::suggestion::did_you_mean;

/// The models: name, where the shape was published, weights, and what of their `config.json` says it.
const MODELS: &str = include_str!("models.json");

/// A model with a name.
#[derive(Deserialize)]
pub(super) struct NamedModel {
    pub(super) name: &'static str,
    /// Its repository on Hugging Face.
    pub(super) source: &'static str,
    /// The weights that are published.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares it with the shape's weights"))]
    pub(super) params: u64,
    /// What of the `config.json` says the shape.
    pub(super) config: Map<String, Value>,
}

/// Returns all models, in the order of the table.
pub(super) fn all() -> Vec<NamedModel> {
    // The table is part of the program, and a test reads it.
    serde_json::from_str(MODELS).unwrap_or_default()
}

/// Returns the model of a name or of a repository, in any case.
pub(super) fn named(name: &str) -> Result<NamedModel, String> {
    if name.ends_with(".json") || Path::new(name).is_file() {
        return Err(format!("{name:?} is a file. Give it with --config."));
    }
    let mut models = all();
    let is_meant = |model: &NamedModel| {
        let repository = model.source.split(' ').next().unwrap_or_default();
        model.name.eq_ignore_ascii_case(name) || repository.eq_ignore_ascii_case(name)
    };
    if let Some(at) = models.iter().position(is_meant) {
        return Ok(models.swap_remove(at));
    }
    let known: Vec<&str> = models.iter().map(|model| model.name).collect();
    let meant = did_you_mean(name, known.iter().copied());
    let list = if meant.is_empty() { format!(" Name one of {}.", known.join(", ")) } else { meant };
    Err(format!(
        "There is no model {name:?}.{list} For any other, give --config with the file config.json of the model."
    ))
}

#[cfg(test)]
mod tests {
    use super::super::config::of_object;
    use super::*;

    #[test]
    fn each_model_has_its_published_weights() {
        let models = all();
        assert!(models.len() >= 30);
        for model in models {
            let config = of_object(&model.config, false).unwrap_or_else(|error| panic!("{}: {error}", model.name));
            assert_eq!(config.model.check(), Ok(()), "{}", model.name);
            assert_eq!(config.model.weights(), model.params, "{}", model.name);
            assert_eq!(u128::from(model.params), config.model.tensors().into_iter().map(u128::from).sum::<u128>());
        }
        assert!(named("Llama-3-8B").is_ok());
        assert!(named("lama-3-8b").is_err_and(|error| error.contains("Did you mean llama-3-8b?")));
    }
}
