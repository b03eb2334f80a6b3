//! Why a settings string is refused.

use super::super::profile::SourceLines;

/// What Python raises for a settings string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// `ValueError`
    Value,
    /// `RuntimeError`
    Runtime,
    /// `IndexError`
    Index,
}

impl ErrorKind {
    /// The exception's name in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Value => "ValueError",
            Self::Runtime => "RuntimeError",
            Self::Index => "IndexError",
        }
    }
}

/// Why a settings string is refused, in PyTorch's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// What Python raises.
    pub kind: ErrorKind,
    /// PyTorch's first line.
    pub message: String,
}

impl ConfigError {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        // Python shows a C string, and a newline in a setting's name would end the first line too.
        if let Some(end) = message.find(['\n', '\0']) {
            message.truncate(end);
        }
        Self { kind, message }
    }

    pub(super) fn value(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Value, message)
    }

    pub(super) fn runtime(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Runtime, message)
    }

    /// A failed `TORCH_INTERNAL_ASSERT`, whose words name the place in PyTorch's source.
    pub(super) fn internal(lines: &SourceLines, condition: &str, file: &str, line: u32, message: &str) -> Self {
        Self::runtime(format!(
            "{condition} INTERNAL ASSERT FAILED at \"{}/c10/{file}\":{line}, please report a bug to PyTorch. {message}",
            lines.root
        ))
    }
}
