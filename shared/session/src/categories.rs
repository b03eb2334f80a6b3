//! Steps and categories: found when a question first needs them, and kept.

use std::sync::Arc;

use super::caches::Cache;
use super::context::Context;
use analysis::category::Categories;
use analysis::roles::Roles;
use analysis::stack_traits::StackTraits;
use analysis::steps::Steps;
use query::own_rules::UserRules;
use replay::Replayed;
use replay::index::Index;
use trace::frames::Symbols;

/// The part by which a trace grows before the list of its steps is made again: at a million events, a refresh that finds
/// all steps would take a tenth of the worker's time.
const GROWN: u32 = 64;

/// The steps and categories of one device.
#[derive(Debug, Default)]
pub(super) struct CategoryCache {
    traits: StackTraits,
    /// The numbers of events and annotations that the steps are those of.
    steps_of: Option<(u32, usize)>,
    steps: Option<Arc<Steps>>,
    /// The categories, unless the trace has grown since.
    categories: Option<Arc<Categories>>,
}

impl CategoryCache {
    /// Returns the steps of a trace.
    pub(super) fn steps(&mut self, input: Replayed<'_>, symbols: &Symbols) -> Option<Arc<Steps>> {
        let of = (input.replay.positions(), input.trace.annotations.len());
        if self.steps_of != Some(of) {
            self.traits.extend(symbols);
            self.steps = Steps::of(input, symbols, &self.traits).map(Arc::new);
            (self.steps_of, self.categories) = (Some(of), None);
        }
        self.steps.clone()
    }

    /// Returns the categories of a trace's allocations.
    pub(super) fn categories(&mut self, input: Replayed<'_>, symbols: &Symbols, user: &UserRules) -> Arc<Categories> {
        let steps = self.steps(input, symbols);
        self.traits.extend(symbols);
        let traits = &self.traits;
        let told = self
            .categories
            .get_or_insert_with(|| Arc::new(Categories::of(input, symbols, traits, steps.as_deref(), user)));
        Arc::clone(told)
    }

    /// Returns the steps as far as a list shows them. While a job runs, they are found again when it has grown by a part,
    /// not at each refresh.
    pub(super) fn known_steps(&mut self, context: Context<'_>) -> Option<Arc<Steps>> {
        let grown = self.steps_of.map_or(u32::MAX, |(before, _)| context.replay.positions().saturating_sub(before));
        if grown > context.replay.positions() / GROWN || self.steps.is_none() {
            self.steps(context.replayed(), context.symbols());
        }
        self.steps.clone()
    }

    /// Lends what is known to a diagnosis, and keeps what that finds.
    pub(super) fn lend<T>(&mut self, context: Context<'_>, diagnose: impl FnOnce(&Roles) -> T) -> T {
        let of = (context.replay.positions(), context.trace.annotations.len());
        let is_current = self.steps_of == Some(of);
        let steps = is_current.then(|| self.steps.clone());
        let categories = self.categories.clone().filter(|_| is_current);
        let roles = Roles::new(context.category_rules.clone()).with(steps, categories);
        let found = diagnose(&roles);
        if let (Some(steps), categories) = roles.found() {
            (self.steps, self.categories, self.steps_of) = (steps, categories, Some(of));
        }
        found
    }
}

impl Cache for CategoryCache {
    fn bytes(&self) -> usize {
        self.traits.bytes() + self.categories.as_ref().map_or(0, |categories| categories.bytes())
    }

    fn forget_categories(&mut self) {
        self.categories = None;
    }
}
