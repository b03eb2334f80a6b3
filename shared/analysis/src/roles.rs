//! The steps and categories of a device's trace, each found when it is first asked for.

use std::cell::OnceCell;
use std::sync::Arc;

use super::category::Categories;
use super::stack_traits::{StackTraits, Traits};
use super::steps::Steps;
use query::own_rules::UserRules;
use replay::Replayed;
use replay::index::Index;
use trace::frames::Symbols;

/// The steps of one trace, and what its allocations are used for. Most diagnoses need neither, so nothing is found before
/// it is asked for. A value belongs to the trace that it is first asked about.
#[derive(Debug, Default)]
pub struct Roles {
    rules: UserRules,
    traits: OnceCell<StackTraits>,
    steps: OnceCell<Option<Arc<Steps>>>,
    categories: OnceCell<Arc<Categories>>,
}

impl Roles {
    /// Takes the user's own rules of categories.
    pub fn new(rules: UserRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Sets what is known already. What is `None` is found when it is asked for.
    #[must_use]
    pub fn with(self, steps: Option<Option<Arc<Steps>>>, categories: Option<Arc<Categories>>) -> Self {
        let steps = steps.map_or_else(OnceCell::new, OnceCell::from);
        let categories = categories.map_or_else(OnceCell::new, OnceCell::from);
        Self { steps, categories, ..self }
    }

    /// Returns the steps; `None` if nothing in the trace repeats.
    pub fn steps(&self, input: Replayed<'_>, symbols: &Symbols) -> Option<&Steps> {
        self.steps.get_or_init(|| Steps::of(input, symbols, self.traits(symbols)).map(Arc::new)).as_deref()
    }

    /// Returns the categories of the allocations.
    pub fn categories(&self, input: Replayed<'_>, symbols: &Symbols) -> &Categories {
        self.categories.get_or_init(|| {
            let (traits, steps) = (self.traits(symbols), self.steps(input, symbols));
            Arc::new(Categories::of(input, symbols, traits, steps, &self.rules))
        })
    }

    /// Returns what has been found: the steps, and the categories.
    pub fn found(self) -> (Option<Option<Arc<Steps>>>, Option<Arc<Categories>>) {
        (self.steps.into_inner(), self.categories.into_inner())
    }

    /// Returns whether the program trains: some stack is of a backward pass or of an optimizer.
    pub fn is_training(&self, symbols: &Symbols) -> bool {
        let training = [Traits::BACKWARD, Traits::OPTIMIZER, Traits::OPTIMIZER_SETUP, Traits::ZERO_GRAD];
        let all = self.traits(symbols).all();
        training.into_iter().any(|of| all.has(of))
    }

    fn traits(&self, symbols: &Symbols) -> &StackTraits {
        self.traits.get_or_init(|| StackTraits::build(symbols))
    }
}
