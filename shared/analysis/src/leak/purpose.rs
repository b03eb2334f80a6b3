//! Lines that keep memory on purpose, by their names.

use trace::frames::{StackId, Symbols};

/// Parts of file names whose frames keep an allocation on purpose.
const KEEPING_FILES: [&str; 2] = ["torch/optim/", "torch/utils/checkpoint.py"];
/// Functions that load a model or create state, which stays on purpose.
const LOADING_FUNCTIONS: [&str; 6] =
    ["_apply", "load_state_dict", "from_pretrained", "reset_parameters", "_init_group", "initialize_parameters"];
/// Words in the text of a line that fills a cache.
const CACHE_WORDS: [&str; 4] = ["cache", "kv_", "past_key", "memoize"];

/// Returns whether the text of a line says that it fills a cache.
pub fn is_cache(label: &str) -> bool {
    let label = label.to_lowercase();
    CACHE_WORDS.iter().any(|word| label.contains(word))
}

/// Returns whether a stack belongs to what stays on purpose: weights, optimizer state, inputs of checkpointed segments.
pub(super) fn keeps_on_purpose(symbols: &Symbols, stack: StackId) -> bool {
    symbols.stack(stack).iter().any(|id| {
        let frame = symbols.frame(*id);
        let (name, file) = (symbols.text(frame.name), symbols.text(frame.filename));
        LOADING_FUNCTIONS.contains(&&*name) || KEEPING_FILES.iter().any(|part| file.contains(part))
    })
}
