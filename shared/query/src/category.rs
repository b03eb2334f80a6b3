//! What allocations are used for.

use serde::{Deserialize, Serialize};

/// What an allocation is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Category {
    /// Weights and buffers of a model.
    Parameters,
    /// Gradients of parameters.
    Gradients,
    /// What an optimizer keeps between steps.
    OptimizerState,
    /// Results of the forward pass: those kept for the backward pass, and those of inference.
    Activations,
    /// Batches of data.
    Inputs,
    /// Results that are used within their phase.
    Temporary,
    /// Keys and values of earlier tokens.
    KvCache,
    /// Scratch memory of a library such as cuBLAS.
    Workspace,
    /// None of the rules fits.
    #[default]
    Unknown,
}

impl Category {
    /// All categories, in the order in which they are stacked.
    pub const ALL: [Self; 9] = [
        Self::Parameters,
        Self::Gradients,
        Self::OptimizerState,
        Self::Activations,
        Self::Inputs,
        Self::Temporary,
        Self::KvCache,
        Self::Workspace,
        Self::Unknown,
    ];

    /// Returns the name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::OptimizerState => "optimizer state",
            Self::Activations => "activations",
            Self::Inputs => "inputs",
            Self::Temporary => "temporary",
            Self::KvCache => "KV cache",
            Self::Workspace => "workspace",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the name for programs and search terms: lower case, with `_` between words.
    pub const fn code(self) -> &'static str {
        match self {
            Self::OptimizerState => "optimizer_state",
            Self::KvCache => "kv_cache",
            other => other.name(),
        }
    }

    /// Returns the category with a name, for people or for programs.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name().eq_ignore_ascii_case(name) || category.code() == name)
    }
}
