//! Steps and categories: found when a question first needs them, and kept.

use std::sync::Arc;

use super::context::Context;
use super::device::Caches;
use analysis::category::{Categories, Category, Rule};
use analysis::lod::columns::coordinate;
use analysis::roles::Roles;
use analysis::stack_traits::StackTraits;
use analysis::steps::{StepSource, Steps};
use query::own_rules::UserRules;
use query::term::is_category;
use query::{Answer, Axis, CategoryRule, CategoryRules, ColorBy, Query, StepList, StepSpan, Window};
use replay::Replayed;
use replay::index::Index;
use trace::frames::Symbols;
use trace::limits::STEPS;
use trace::totals::Amount;

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

    /// Returns the approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.traits.bytes() + self.categories.as_ref().map_or(0, |categories| categories.bytes())
    }
}

impl Caches {
    /// Forgets what depends on categories: the rules have changed.
    pub(super) fn forget_categories(&mut self) {
        self.told.categories = None;
        self.diagnosis.forget();
        (self.terms, self.drawings, self.found) = Default::default();
        (self.lists, self.sorted) = Default::default();
    }
}

/// Returns whether a question is about categories.
pub(super) fn are_needed(query: &Query) -> bool {
    let is_category = |term: &String| is_category(term);
    let any = |filter: &[String], highlight: Option<&String>| filter.iter().chain(highlight).any(is_category);
    let by = |color_by: ColorBy| color_by == ColorBy::Category;
    match query {
        Query::Timeline(q) => by(q.color_by) || any(&q.filter, q.highlight.as_ref()),
        Query::Segments(q) => by(q.color_by) || any(&q.filter, q.highlight.as_ref()),
        Query::Classes(q) => by(q.color_by) || any(&q.filter, q.highlight.as_ref()),
        Query::Flame(q) => q.by_category || any(&q.filter, q.highlight.as_ref()),
        Query::Lines(q) => any(&q.filter, None),
        Query::Line(q) => any(&q.filter, None),
        Query::Events { filter, .. } | Query::StepEvent { filter, .. } => any(&filter.terms, None),
        Query::Search { term } | Query::NextHit { term, .. } => is_category(term),
        Query::Find(q) => is_category(&q.term),
        Query::SortedEvents(q) => any(&q.filter.terms, None),
        Query::Allocation { .. } | Query::CategoryRules => true,
        _ => false,
    }
}

/// Answers [`Query::CategoryRules`].
pub(super) fn rules(context: Context<'_>, caches: &mut Caches) -> Answer {
    let Some(told) = context.categories else { return Answer::CategoryRules(CategoryRules::default()) };
    let peak = caches.states.at(context.replay, context.summary.peak_position);
    let own = context.category_rules.rules();
    let mut sums = vec![Amount::default(); own.len() + Rule::ALL.len()];
    let (mut total, mut unknown) = (Amount::default(), Amount::default());
    for &id in &peak.active {
        let bytes = context.replay.allocations.requested.get(id as usize).unwrap_or(0);
        let place = match told.rule(id) {
            Ok(rule) => own.len() + rule as usize,
            Err(number) => number,
        };
        sums.get_mut(place).into_iter().chain([&mut total]).for_each(|sum| sum.add(bytes));
        if told.get(id) == Category::Unknown {
            unknown.add(bytes);
        }
    }
    let of_user = own.iter().map(|rule| CategoryRule {
        name: rule.part.clone(),
        matches: "A frame of its stack has this in its function, its file or its line.".to_owned(),
        category: rule.category,
        is_own: true,
        at_peak: Amount::default(),
    });
    let built_in = Rule::ALL.into_iter().map(|rule| CategoryRule {
        name: rule.name().to_owned(),
        matches: rule.reason().to_owned(),
        category: rule.category(),
        is_own: false,
        at_peak: Amount::default(),
    });
    let rules = of_user.chain(built_in).zip(sums).map(|(rule, at_peak)| CategoryRule { at_peak, ..rule });
    Answer::CategoryRules(CategoryRules { rules: rules.collect(), total, unknown })
}

/// Answers [`Query::Steps`].
pub(super) fn steps(context: Context<'_>, caches: &mut Caches, axis: Axis) -> Answer {
    let Some(found) = caches.told.known_steps(context) else {
        return Answer::Steps(StepList::default());
    };
    let x = |position| coordinate(context.trace, context.replay, axis, position);
    let spans = found.steps.iter().take(STEPS).map(|step| StepSpan {
        number: step.number,
        from: step.from,
        to: step.to,
        span: Window { start: x(step.from), end: x(step.to) },
        is_whole: step.is_whole,
    });
    Answer::Steps(StepList {
        source: found.source.to_string(),
        is_annotated: found.source == StepSource::Annotations,
        steps: spans.collect(),
        count: u32::try_from(found.steps.len()).unwrap_or(u32::MAX),
    })
}
