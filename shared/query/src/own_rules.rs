//! The user's own rules, which come before those of Vramscope: whose code a frame is, and what an allocation is used for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::category::Category;
use crate::folding::Overrides;
use trace::limits::{CATEGORY_RULES, FOLDING_PART_BYTES};

/// A rule of the user's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRule {
    /// A part of a function, a file, or `file:line`.
    pub part: String,
    /// The category of what has a frame with that part.
    pub category: Category,
}

impl fmt::Display for UserRule {
    /// Writes `attention.py:54 = activations`, as [`UserRule::from_str`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.part, self.category.name())
    }
}

impl FromStr for UserRule {
    type Err = String;

    /// Reads a rule. Errs with a sentence for the user.
    fn from_str(text: &str) -> Result<Self, String> {
        let (part, name) = text
            .rsplit_once('=')
            .ok_or_else(|| format!("“{text}” has no “=”: write a part of a line or path, “=”, and a category."))?;
        let name = name.trim();
        let names = || Category::ALL.map(Category::name).join(", ");
        let category = Category::from_name(name)
            .ok_or_else(|| format!("“{name}” is no category. The categories are {}.", names()))?;
        Ok(Self { part: part.trim().to_owned(), category })
    }
}

/// The rules of the user's own. The first one that fits decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRules(Vec<UserRule>);

impl UserRules {
    /// Adds a rule behind the others: a part of a function, a file or `file:line`, and a category. Replaces the category of
    /// a rule with the same part.
    ///
    /// Errs with a sentence for the user if the part is empty, too long or one too many.
    pub fn add(&mut self, part: &str, category: Category) -> Result<(), String> {
        let part = part.trim();
        if part.is_empty() {
            return Err("Name a part of a function, a file or a line, such as attention.py:54.".to_owned());
        }
        if part.len() > FOLDING_PART_BYTES {
            return Err(format!("A part of a line or path has at most {FOLDING_PART_BYTES} bytes."));
        }
        if let Some(known) = self.0.iter_mut().find(|known| known.part == part) {
            known.category = category;
        } else if self.0.len() >= CATEGORY_RULES {
            return Err(format!("There are already {CATEGORY_RULES} rules. Remove one first."));
        } else {
            self.0.push(UserRule { part: part.to_owned(), category });
        }
        Ok(())
    }

    /// Removes the rule with a part.
    pub fn remove(&mut self, part: &str) {
        self.0.retain(|rule| rule.part != part);
    }

    /// Returns the rules.
    pub fn rules(&self) -> &[UserRule] {
        &self.0
    }
}

impl fmt::Display for UserRules {
    /// Writes one rule a line, as [`UserRules::from_str`] reads them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}

impl FromStr for UserRules {
    type Err = String;

    /// Reads one rule a line; empty lines and those that begin with `#` are skipped. Errs with a sentence for the user.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut rules = Self::default();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if !line.is_empty() && !line.starts_with('#') {
                let added = line.parse().and_then(|UserRule { part, category }| rules.add(&part, category));
                added.map_err(|why| format!("Line {number}: {why}"))?;
            }
        }
        Ok(rules)
    }
}

/// All rules of the user's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnRules {
    /// Whose code a frame is: these choose the lines.
    pub folding: Overrides,
    /// What an allocation is used for.
    pub categories: UserRules,
}

impl OwnRules {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.folding.is_empty() && self.categories.rules().is_empty()
    }
}
