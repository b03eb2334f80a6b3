//! Whether two runs may be compared.

use query::run_comparison::{Comparability, ConditionDifference};
use query::run_profile::{Conditions, RunProfile};
use trace::order::SortFew;
use trace::units::{Bytes, Count};

/// The share of the larger of two amounts, in percent, up to which they count as equal.
const SLACK_PERCENT: u64 = 5;

/// Returns in which conditions two runs differ, the weightiest first.
pub(super) fn differences(before: &RunProfile, after: &RunProfile) -> Vec<ConditionDifference> {
    let [a, b] = [&before.conditions, &after.conditions];
    let mut found = Vec::new();
    let mut add = |what: &str, values: [String; 2], consequence: &str, weight| {
        found.push(ConditionDifference { what: what.to_owned(), values, consequence: consequence.to_owned(), weight });
    };
    let both = |of: &dyn Fn(&Conditions) -> String| [of(a), of(b)];
    let either = |of: &dyn Fn(&Conditions) -> bool| of(a) || of(b);
    let only_one = |of: &dyn Fn(&Conditions) -> bool| of(a) != of(b);
    let are_known = |values: &[String; 2]| values.iter().all(|value| !value.is_empty()) && values[0] != values[1];

    if only_one(&|of| of.has_history) {
        let named = |of: &Conditions| if of.has_history { "recorded" } else { "none" }.to_owned();
        add("history", both(&named), "One has a history, and the other only its end", Comparability::No);
    }
    let torch = both(&|of| of.torch.clone());
    if are_known(&torch) {
        add("PyTorch", torch, "", Comparability::WithCare);
    }
    if a.conf != b.conf {
        let named = |of: &Conditions| if of.conf.is_empty() { "default".to_owned() } else { of.conf.clone() };
        add("settings", both(&named), "What is reserved depends on them", Comparability::WithCare);
    }
    let card = both(&|of| of.card.clone());
    if are_known(&card) {
        add("card", card, "", Comparability::WithCare);
    } else if a.capacity != b.capacity && a.capacity > 0 && b.capacity > 0 {
        add("device memory", both(&|of| Bytes(of.capacity).to_string()), "", Comparability::WithCare);
    }
    if a.rank != b.rank {
        let named = |of: &Conditions| of.rank.map_or_else(|| "none".to_owned(), |rank| rank.to_string());
        add("rank", both(&named), "Ranks may hold other parts of a model", Comparability::WithCare);
    }
    if let (Some(one), Some(other)) = (a.ranks, b.ranks)
        && one != other
    {
        let values = [one, other].map(|ranks| Count(ranks.into()).to_string());
        add("processes of the job", values, "What is divided among them is as well", Comparability::WithCare);
    }
    // Blocks that a snapshot has with their stacks have lines, whenever they were made.
    let is_unnamed = [before, after].iter().any(|run| run.at_start.bytes > 0);
    if is_unnamed && !is_about(a.reserved_at_start, b.reserved_at_start) {
        let values = both(&|of| Bytes(of.reserved_at_start).to_string());
        add("reserved when recording began", values, "What was there before has no line", Comparability::WithCare);
    }
    if only_one(&|of| of.has_stacks) {
        let named = |of: &Conditions| if of.has_stacks { "recorded" } else { "none" }.to_owned();
        add("stacks", both(&named), "Lines can't be compared", Comparability::WithCare);
    }
    if either(&|of| of.lost > 0) {
        let values = both(&|of| Count(of.lost).to_string());
        add("events lost", values, "What depends on them is not exact", Comparability::WithCare);
    }
    if either(&|of| of.is_damaged) {
        let named = |of: &Conditions| if of.is_damaged { "damaged" } else { "whole" }.to_owned();
        add("file", both(&named), "Only what could be read is compared", Comparability::WithCare);
    }
    if a.failed != b.failed {
        add("requests that failed", both(&|of| Count(of.failed).to_string()), "", Comparability::Yes);
    }
    let inputs = [before, after].map(|run| run.inputs.bytes);
    if inputs.iter().all(|bytes| *bytes > 0) && !is_about(before.inputs.bytes, after.inputs.bytes) {
        let values = inputs.map(|bytes| Bytes(bytes).to_string());
        add("inputs of the step", values, "They may not do the same work", Comparability::Yes);
    }
    let are_steps = before.moment.step.is_some() && after.moment.step.is_some();
    if are_steps && a.steps != b.steps {
        let consequence = "The same number may be of another step";
        add("steps found", both(&|of| of.steps.clone()), consequence, Comparability::WithCare);
    }
    found.sort_few_by_key(|found| std::cmp::Reverse(found.weight));
    found
}

/// Returns whether two amounts differ by little.
fn is_about(one: u64, other: u64) -> bool {
    let most = u128::from(one.max(other));
    u128::from(one.abs_diff(other)) * 100 <= most * u128::from(SLACK_PERCENT)
}
