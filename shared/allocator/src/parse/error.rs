//! Why a settings string is rejected.

use super::super::profile::SourceLines;

/// The Python exception for a settings string.
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
    /// Returns the exception's name in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Value => "ValueError",
            Self::Runtime => "RuntimeError",
            Self::Index => "IndexError",
        }
    }
}

/// Why a settings string is rejected, in PyTorch's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// The Python exception.
    pub kind: ErrorKind,
    /// The first line of PyTorch's message.
    pub message: String,
}

/// The message where PyTorch has none: it reads memory beyond its tokens, and crashes or continues with what it found.
const READ_PAST_THE_END: &str = "roundup_power2_divisions has no closing bracket; this release of PyTorch may crash on it: write ] after the last value";

impl ConfigError {
    /// Returns the error for a string whose effect in PyTorch is undefined.
    pub(super) fn undefined() -> Self {
        Self::runtime(READ_PAST_THE_END)
    }

    /// Returns whether the string's effect in PyTorch is undefined: this release reads memory beyond its tokens.
    pub fn is_undefined(&self) -> bool {
        self.message == READ_PAST_THE_END
    }

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

    /// Returns the message of a failed `TORCH_INTERNAL_ASSERT`, which names the place in PyTorch's source.
    pub(super) fn internal(lines: &SourceLines, condition: &str, file: &str, line: u32, message: &str) -> Self {
        Self::runtime(format!(
            "{condition} INTERNAL ASSERT FAILED at \"{}/c10/{file}\":{line}, please report a bug to PyTorch. {message}",
            lines.root
        ))
    }
}
