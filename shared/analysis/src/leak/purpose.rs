//! Lines that keep memory on purpose, by their names.

use trace::frames::{StackId, Symbols};

/// Parts of file names whose frames keep an allocation on purpose.
const KEEPING_FILES: [&str; 4] =
    ["torch/optim/", "torch/utils/checkpoint.py", "activation_checkpointing/", "tensor_parallel/random.py"];
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

/// Why a stack's memory stays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Nothing says that it should.
    Unknown,
    /// It is the state of an optimizer, which keeps it for as long as it exists itself.
    Optimizer,
    /// It stays on purpose: weights, inputs of checkpointed segments.
    Kept,
}

impl Purpose {
    pub(super) fn of(symbols: &Symbols, stack: StackId) -> Self {
        let frames = || symbols.stack(stack).iter().map(|id| symbols.frame(*id));
        let has_file = |part: &str| frames().any(|frame| symbols.text(frame.filename).contains(part));
        // One keeps the directions of its last hundred steps.
        if has_file("torch/optim/") && !has_file("/lbfgs.py") {
            return Self::Optimizer;
        }
        let is_loading = frames().any(|frame| {
            let name = symbols.text(frame.name);
            let is_module = name == "__init__" && symbols.text(frame.filename).contains("torch/nn/modules/");
            is_module || LOADING_FUNCTIONS.contains(&&*name)
        });
        if is_loading || KEEPING_FILES.iter().any(|part| has_file(part)) { Self::Kept } else { Self::Unknown }
    }
}
