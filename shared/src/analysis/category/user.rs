//! Rules of the user's own, which come before the others: a part of a line or path, and a category.

use super::Category;
use crate::frames::{FrameId, StackId, Symbols};
use crate::limits::CATEGORY_RULES;
use crate::query::term::Pattern;

/// A rule of the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRule {
    /// A part of a function, a file, or `file:line`.
    pub part: String,
    /// The category of what has a frame with that part.
    pub category: Category,
}

/// The rules of the user's own. The first one that fits decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserRules(Vec<UserRule>);

impl UserRules {
    /// Takes a list of rules, up to [`CATEGORY_RULES`]. Rules without a part fit nothing and are left out.
    pub fn new(rules: Vec<UserRule>) -> Self {
        Self(rules.into_iter().filter(|rule| !rule.part.trim().is_empty()).take(CATEGORY_RULES).collect())
    }

    /// Reads rules from text, one a line: `attention.py:54 = activations`. The error is a sentence for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (part, name) = line.rsplit_once('=').ok_or_else(|| {
                format!("Line {number} has no “=”: write a part of a line or path, “=”, and a category.")
            })?;
            let names = || Category::ALL.map(Category::name).join(", ");
            let category = Category::from_name(name.trim()).ok_or_else(|| {
                format!("Line {number}: “{}” is no category. The categories are {}.", name.trim(), names())
            })?;
            rules.push(UserRule { part: part.trim().to_owned(), category });
        }
        if rules.len() > CATEGORY_RULES {
            return Err(format!("There can be {CATEGORY_RULES} rules at most; these are {}.", rules.len()));
        }
        Ok(Self::new(rules))
    }

    /// Returns the rules.
    pub fn rules(&self) -> &[UserRule] {
        &self.0
    }

    pub(super) fn categories(&self) -> Vec<Category> {
        self.0.iter().map(|rule| rule.category).collect()
    }

    /// Returns for each stack the number of the first rule that fits one of its frames; empty without rules.
    pub(super) fn by_stack(&self, symbols: &Symbols) -> Vec<Option<u8>> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let patterns: Vec<Pattern> = self.0.iter().map(|rule| Pattern::text(rule.part.trim())).collect();
        let of_frame = |id: u32| {
            let frame = symbols.frame(FrameId(id));
            let fits = patterns.iter().position(|pattern| pattern.fits_frame(symbols, frame));
            fits.and_then(|rule| u8::try_from(rule).ok())
        };
        let frames: Vec<Option<u8>> = (0..symbols.frame_count() as u32).map(of_frame).collect();
        let of_stack = |id: u32| {
            let rules = symbols.stack(StackId(id)).iter().filter_map(|frame| frames.get(frame.0 as usize).copied()?);
            rules.min()
        };
        (0..symbols.stack_count() as u32).map(of_stack).collect()
    }
}
