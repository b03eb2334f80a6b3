//! A position among the tokens, with PyTorch's messages for reading past their end (`ConfigTokenizer`).

use super::super::profile::{Profile, SourceLines};
use super::error::ConfigError;

const HEADER: &str = "core/AllocatorConfig.h";
const IN_BOUNDS: &str = "i < config_.size()";

/// The current token is the one that was read last.
pub(super) struct Cursor<'a> {
    tokens: &'a [String],
    at: usize,
    lines: &'a SourceLines,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(tokens: &'a [String], profile: &'a Profile) -> Self {
        Self { tokens, at: 0, lines: &profile.lines }
    }

    pub(super) fn current(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// Moves past the separator after a value, if there is one, to the next key.
    pub(super) fn next_key(&mut self) {
        self.at += if self.at + 1 < self.tokens.len() { 2 } else { 1 };
    }

    /// Skips a token that should be a separator (`checkToken`, whose result no caller uses).
    pub(super) fn separator(&mut self) -> Result<(), ConfigError> {
        self.value().map(drop)
    }

    /// Returns the next token, as the functions that convert one read it.
    pub(super) fn value(&mut self) -> Result<&'a str, ConfigError> {
        self.at += 1;
        self.current().ok_or_else(|| self.out_of_bounds(self.lines.index))
    }

    /// Returns the next token, as `operator[]` reads it.
    pub(super) fn operand(&mut self) -> Result<&'a str, ConfigError> {
        self.at += 1;
        self.current().ok_or_else(|| self.out_of_bounds(self.lines.token))
    }

    /// Returns the token after the current one, as `operator[]` reads it.
    pub(super) fn peek(&self) -> Result<&'a str, ConfigError> {
        let next = self.tokens.get(self.at + 1).map(String::as_str);
        next.ok_or_else(|| self.out_of_bounds(self.lines.token))
    }

    /// Skips a key's value, including a whole list (`skipKey`).
    pub(super) fn skip(&mut self) -> Result<(), ConfigError> {
        self.separator()?;
        if self.value()? != "[" {
            return Ok(());
        }
        loop {
            self.at += 1;
            match self.current() {
                None => return Err(self.unclosed(IN_BOUNDS, HEADER, |lines| lines.list_end)),
                Some("]") => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// Reads `True` or `False` after a separator.
    pub(super) fn flag(&mut self) -> Result<bool, ConfigError> {
        self.separator()?;
        match self.value()? {
            "True" => Ok(true),
            "False" => Ok(false),
            other => Err(ConfigError::value(format!(
                "Expected 'True' or 'False' at index {} in ConfigTokenizer but got '{other}'",
                self.at
            ))),
        }
    }

    /// Skips a list of names and values up to its closing bracket.
    pub(super) fn pairs(&mut self) -> Result<(), ConfigError> {
        self.separator()?;
        self.separator()?;
        while self.peek_separator()? != "]" {
            self.operand()?;
            self.separator()?;
            self.operand()?;
            if self.peek_separator()? == "," {
                self.at += 1;
            }
        }
        self.at += 1;
        Ok(())
    }

    fn peek_separator(&self) -> Result<&'a str, ConfigError> {
        let next = self.tokens.get(self.at + 1).map(String::as_str);
        next.ok_or_else(|| self.out_of_bounds(self.lines.index))
    }

    /// Returns the error for a string that ends within a list.
    pub(super) fn unclosed(&self, condition: &str, file: &str, line: fn(&SourceLines) -> u32) -> ConfigError {
        let message = "Expected closing bracket ']' in ConfigTokenizer but reached end of config";
        ConfigError::internal(self.lines, condition, file, line(self.lines), message)
    }

    fn out_of_bounds(&self, line: u32) -> ConfigError {
        ConfigError::internal(self.lines, IN_BOUNDS, HEADER, line, "Index out of bounds in ConfigTokenizer")
    }
}
