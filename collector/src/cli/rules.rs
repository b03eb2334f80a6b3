//! The options for rules of the user's own.

use clap::Args;
use query::own_rules::OwnRules;
use query::own_rules::UserRule;

/// Rules that count before those that Vramscope has.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct RuleOptions {
    /// Treat files with this part of a path as your own code, such as site-packages/mylib. May be given several times
    #[arg(long, value_name = "PATH-PART")]
    mine: Vec<String>,
    /// Treat files with this part of a path as a library, so that the line that called it is shown
    #[arg(long, value_name = "PATH-PART")]
    library: Vec<String>,
    /// Tell the category of what has a frame with this part in its function, file or line, such as
    /// attention.py:54=activations. May be given several times; the first one that fits counts
    #[arg(long, value_name = "PATTERN=CATEGORY")]
    category: Vec<String>,
}

impl RuleOptions {
    /// Returns the rules, or what is wrong with them as a sentence.
    pub(super) fn rules(&self) -> Result<OwnRules, String> {
        let mut rules = OwnRules::default();
        self.mine.iter().try_for_each(|part| rules.folding.add_mine(part))?;
        self.library.iter().try_for_each(|part| rules.folding.add_library(part))?;
        for rule in &self.category {
            let UserRule { part, category } = rule.parse()?;
            rules.categories.add(&part, category)?;
        }
        Ok(rules)
    }
}
