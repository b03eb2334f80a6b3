//! The category of each allocation: parameters, gradients, optimizer state, activations.
//!
//! ```text
//! stacks ─► traits ─┐
//! annotations ──────┴► phase of each allocation ─► lifetime: what of the next phase it outlives ─► rule ─► category
//! ```
//! A snapshot does not say what a tensor is for. It says where it was made and when it was freed, and a training step has
//! an order: what the backward pass makes and the optimizer finds is a gradient. [`Rule`] is the whole table, and
//! [`UserRules`] come before it. What no rule fits is [`Category::Unknown`].
//!
//! `CATEGORIES.md` in this folder has the share that is right, measured against jobs whose tensors are known.

mod early;
mod phase;
mod replaced;
mod rule;
mod stays;
mod user;

use query::own_rules::UserRules;
pub use rule::Rule;

use phase::{Phase, Phases};

use rustc_hash::FxHashMap;

use super::stack_traits::{StackTraits, Traits};
use super::steps::Steps;
pub use query::category::Category;

use query::diagnosis::HeldCategory;
use replay::{Allocation, Replay, Replayed};
use trace::frames::{StackId, Symbols};
use trace::order::SortFew;

/// The category of every allocation of a device, and the rule that decided it.
#[derive(Clone, Debug, Default)]
pub struct Categories {
    /// For each allocation a [`Rule`]'s number, or, from [`Rule::ALL`]'s length on, a user rule's.
    rules: Vec<u8>,
    /// The categories of the user's rules.
    user: Vec<Category>,
}

impl Categories {
    /// Classifies every allocation. The time is proportional to their number.
    pub fn of(
        input: Replayed<'_>,
        symbols: &Symbols,
        traits: &StackTraits,
        steps: Option<&Steps>,
        user: &UserRules,
    ) -> Self {
        let phases = Phases::of(input, symbols, traits, steps);
        let may_train = phases.may_train();
        let user_of_stack = user::by_stack(user, symbols);
        let first_user = Rule::ALL.len() as u8;
        let allocations = &input.replay.allocations;
        let lives = allocations.stack.iter().zip(allocations.freed.iter()).zip(allocations.end.iter());
        let mut rules: Vec<u8> = (0..)
            .zip(lives.zip(allocations.requested.iter()))
            .map(|(id, (((stack, freed), end), bytes))| {
                if let Some(Some(rule)) = user_of_stack.get(stack as usize) {
                    return first_user.saturating_add(*rule);
                }
                let lifetime = Lifetime { traits: traits.of(StackId(stack)), bytes, freed_at: freed.min(end) };
                let rule = |made: phase::Circumstances| match rule_of(lifetime, made, &phases) {
                    rule if is_guess(rule, lifetime, made, &phases, may_train) => Rule::Unknown,
                    rule => rule,
                };
                phases.get(id).map_or(Rule::Unknown, rule) as u8
            })
            .collect();
        early::classify(allocations, &mut rules, &phases);
        replaced::classify(input, &mut rules);
        if phases.is_inference {
            last_pass(input, &mut rules, &phases);
            kept_by_autograd(&mut rules);
        }
        stays::classify(input, &mut rules, &phases);
        Self { rules, user: user::categories(user) }
    }

    /// Returns the category of an allocation.
    pub fn get(&self, id: u32) -> Category {
        match self.rule(id) {
            Ok(rule) => rule.category(),
            Err(user) => self.user.get(user).copied().unwrap_or_default(),
        }
    }

    /// Returns the rule that decided an allocation's category, or the number of the user's rule that did.
    pub fn rule(&self, id: u32) -> Result<Rule, usize> {
        let number = usize::from(self.rules.get(id as usize).copied().unwrap_or(Rule::Unknown as u8));
        Rule::ALL.get(number).copied().ok_or_else(|| number - Rule::ALL.len())
    }

    /// Returns the number of allocations.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the requested bytes of each category among some allocations, in the order of [`Category::ALL`].
    pub fn sums(&self, input: Replayed<'_>, ids: impl Iterator<Item = u32>) -> [u64; Category::ALL.len()] {
        let mut sums = [0_u64; Category::ALL.len()];
        for id in ids {
            let bytes = input.replay.allocations.requested.get(id as usize).unwrap_or(0);
            if let Some(sum) = sums.get_mut(self.get(id) as usize) {
                *sum = sum.saturating_add(bytes);
            }
        }
        sums
    }

    /// Returns what some allocations hold by category, the largest first; only categories that hold something.
    pub fn held(&self, replay: &Replay, ids: impl Iterator<Item = u32>) -> Vec<HeldCategory> {
        let mut held = Category::ALL.map(|category| HeldCategory { category, bytes: 0, count: 0 });
        for id in ids {
            let bytes = replay.allocations.requested.get(id as usize).unwrap_or(0);
            if let Some(sum) = held.get_mut(self.get(id) as usize) {
                sum.bytes = sum.bytes.saturating_add(bytes);
                sum.count = sum.count.saturating_add(1);
            }
        }
        let mut held: Vec<HeldCategory> = held.into_iter().filter(|sum| sum.count > 0).collect();
        held.sort_few_by_key(|sum| (std::cmp::Reverse(sum.bytes), sum.category));
        held
    }

    /// Returns the memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.rules.capacity()
    }
}

/// Classifies what the last pass of inference keeps, whose lifetime the trace does not show: memory of the call sites
/// whose earlier results were mostly kept.
fn last_pass(input: Replayed<'_>, rules: &mut [u8], phases: &Phases) {
    let allocations = &input.replay.allocations;
    // By stack: how many more were kept than not.
    let mut kept: FxHashMap<u32, i64> = FxHashMap::default();
    let is_open = |id: u32| phases.get(id).is_some_and(|made| made.until == Allocation::NEVER);
    for ((rule, stack), id) in rules.iter().zip(allocations.stack.iter()).zip(0..) {
        let vote = match *rule {
            rule if rule == Rule::ForwardKept as u8 => 1,
            rule if rule == Rule::Inferred as u8 && !is_open(id) => -1,
            _ => continue,
        };
        *kept.entry(stack).or_default() += vote;
    }
    for ((rule, stack), id) in rules.iter_mut().zip(allocations.stack.iter()).zip(0..) {
        let is_kept = kept.get(&stack).is_some_and(|votes| *votes > 0);
        let is_live = allocations.end.get(id as usize) == Some(Allocation::NEVER);
        if *rule == Rule::Inferred as u8 && is_open(id) && is_live && is_kept {
            *rule = Rule::ForwardKept as u8;
        }
    }
}

/// Classifies what inference without `torch.no_grad` keeps: there a pass keeps half of what it makes until its result is replaced. A
/// cache gets a tenth of it: 9 % in the serving job of `tests/differential/categories.py`. A quarter lies between the two.
fn kept_by_autograd(rules: &mut [u8]) {
    /// Of fewer tensors it can't be told.
    const FEWEST: usize = 32;
    let count = |wanted: Rule| rules.iter().filter(|rule| **rule == wanted as u8).count();
    let (kept, freed) = (count(Rule::ForwardKept), count(Rule::Inferred));
    if kept >= FEWEST && kept * 3 >= freed {
        for rule in rules.iter_mut().filter(|rule| **rule == Rule::ForwardKept as u8) {
            *rule = Rule::Inferred as u8;
        }
    }
}

/// Returns whether a rule relies on the absence of something that may have been lost.
fn is_guess(rule: Rule, lifetime: Lifetime, made: phase::Circumstances, phases: &Phases, may_train: bool) -> bool {
    match rule {
        // What is kept for the backward pass, or is the result of inference.
        Rule::Saved | Rule::Interrupted | Rule::ForwardScratch if may_train => true,
        // The next phase may have begun earlier, and found it.
        Rule::OptimizerScratch
        | Rule::BackwardScratch
        | Rule::SetupScratch
        | Rule::ForwardScratch
        | Rule::InputScratch => phases.loses_within(made.begin, lifetime.freed_at.min(made.until)),
        // No gradient has its size, as far as they are known.
        Rule::BackwardOpen | Rule::OwnInput => phases.has_lost,
        _ => false,
    }
}

/// The properties of an allocation that rules look at.
#[derive(Clone, Copy, Debug)]
struct Lifetime {
    traits: Traits,
    bytes: u64,
    /// The position at which it is freed.
    freed_at: u32,
}

/// The requested bytes of cuBLAS's workspaces: 2 × 4 MiB and 8 × 16 KiB (`CUBLAS_WORKSPACE_CONFIG`'s default), 32 MiB on
/// Hopper, and 1 MiB of cuBLASLt. They are made with a thread's first product and never freed.
pub(crate) const CUBLAS_WORKSPACES: [u64; 3] = [8_519_680, 33_554_432, 1_048_576];

/// Returns the first rule of the table that fits.
fn rule_of(lifetime: Lifetime, made: phase::Circumstances, phases: &Phases) -> Rule {
    let Lifetime { traits, bytes, freed_at } = lifetime;
    let phase::Circumstances { phase, begin, until, step_end, next_step_end, is_result } = made;
    // An allocation is gone at the position after the event that frees it.
    let is_kept = freed_at > until || until == Allocation::NEVER && freed_at == Allocation::NEVER;
    let is_forever = freed_at == Allocation::NEVER;
    let outlives_step = step_end.is_some_and(|end| freed_at > end);
    if traits.has(Traits::KV_CACHE) {
        return Rule::CacheByName;
    }
    if traits.has(Traits::WORKSPACE) {
        return Rule::WorkspaceByName;
    }
    if traits.has(Traits::BUCKETS) {
        return Rule::GradientBuckets;
    }
    // In training, a cache may be of anything: inputs, features, activations.
    if traits.has(Traits::CACHE) && phases.is_inference && (is_kept || is_forever || outlives_step) {
        return Rule::ServedCache;
    }
    // Tensors have round sizes too.
    let is_workspace = CUBLAS_WORKSPACES.contains(&bytes) && (outlives_step || !bytes.is_power_of_two());
    if is_forever && is_workspace && !matches!(phase, Phase::Unknown | Phase::Setup | Phase::Optimizer) {
        return Rule::WorkspaceBySize;
    }
    match phase {
        Phase::Unknown => Rule::Unknown,
        Phase::Optimizer if is_kept => Rule::OptimizerKept,
        Phase::Optimizer => Rule::OptimizerScratch,
        Phase::Recompute => Rule::Recomputed,
        // The trace ends within the backward pass: sizes decide.
        Phase::Backward if until == Allocation::NEVER && is_forever && !phases.is_gradient_size(bytes) => {
            Rule::BackwardOpen
        }
        Phase::Backward if is_kept => Rule::BackwardKept,
        Phase::Backward => Rule::BackwardScratch,
        Phase::Setup if is_kept && traits.has(Traits::OPTIMIZER_SETUP) => Rule::OptimizerBuilt,
        Phase::Setup if is_kept => Rule::ModuleKept,
        Phase::Setup => Rule::SetupScratch,
        Phase::Loader => Rule::Loaded,
        Phase::Forward if phases.is_inference && !is_result && (outlives_step || freed_at > until) => Rule::ForwardKept,
        Phase::Forward if phases.is_inference => Rule::Inferred,
        Phase::Forward if is_kept => Rule::Saved,
        // The exception freed what the backward pass would have found.
        Phase::Forward if phases.fails_within(begin, freed_at) => Rule::Interrupted,
        Phase::Forward => Rule::ForwardScratch,
        // Without a model nothing is known about what the program's own code makes.
        Phase::Before if phases.first_step == Allocation::NEVER => Rule::Unknown,
        Phase::Before if begin <= phases.first_step && phases.outlives_first_step(freed_at) => {
            // Without any module's parameters, what a server never frees is its model, not a batch.
            let is_model = phases.is_inference && is_forever && !phases.has_modules;
            match phases.is_gradient_size(bytes) {
                true => Rule::OwnParameter,
                false if is_model => Rule::OwnModel,
                false => Rule::OwnInput,
            }
        }
        // A batch is replaced by the next one. What stays longer may be anything: a log, a buffer, a leak.
        Phase::Before if next_step_end.is_some_and(|end| freed_at > end) => Rule::Unknown,
        Phase::Before if is_kept => Rule::Input,
        Phase::Before => Rule::InputScratch,
        Phase::After if phases.is_inference => Rule::Inferred,
        Phase::After if is_kept => Rule::Saved,
        Phase::After if phases.fails_within(begin, freed_at) => Rule::Interrupted,
        Phase::After => Rule::ForwardScratch,
    }
}

#[cfg(test)]
mod tests;
