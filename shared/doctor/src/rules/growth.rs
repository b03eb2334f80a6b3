//! Lines that hold more and more for a reason that is known: caches, and what stops growing; and steps that need more and more.

use rustc_hash::FxHashMap;

use super::lines::by_line;
use super::thresholds::{GROWTH_PERCENT, is_share};
use super::{RuleContext, step_peaks};
use analysis::leak::{LeakCandidate, Trend, is_cache};
use analysis::peak::held_at;
use query::finding::{Evidence, Finding, FindingCode, Remedy};
use query::line_in_sentence;
use trace::frames::FrameId;
use trace::units::{Bytes, Count, counted, percent};

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    let peak = context.case.usage.peak_bytes;
    let mut found: Vec<(String, Finding)> = (context.rising.iter())
        .filter(|candidate| !candidate.is_leak() && is_share(candidate.most_held.0, peak, GROWTH_PERCENT))
        .map(|candidate| rising(context, candidate))
        .collect();
    // A cache whose entries are replaced and freed again never looks as if it kept them.
    let known: Vec<String> = found.iter().map(|(line, _)| line.clone()).collect();
    found.extend(caches(context).filter(|(line, _)| !known.contains(line)));
    found.into_iter().map(|(_, finding)| finding).chain(step_peaks::check(context)).collect()
}

fn rising(context: &RuleContext<'_>, candidate: &LeakCandidate) -> (String, Finding) {
    let label = context.label(candidate.stack);
    let line = line_in_sentence(&label);
    let (most, at) = candidate.most_held;
    let message = match candidate.trend {
        Trend::Rising | Trend::Replaced => format!(
            "{line} {}: {}, {}, were still live after event {}.{} It is not counted as a leak.",
            if candidate.is_cache {
                "fills a cache, by its name"
            } else {
                "keeps what is put together in each round, as the keys and values of an answer are"
            },
            counted(candidate.count.into(), "allocation"),
            Bytes(candidate.last_bytes),
            Count(candidate.until.into()),
            context.rise_by_step(candidate).map(|rise| format!(" It kept {rise}.")).unwrap_or_default(),
        ),
        Trend::Level => format!(
            "{line} grew up to {} (seen after event {}) and no further, as a cache or buffer that fills up does.",
            Bytes(most),
            Count(at.into()),
        ),
    };
    let finding = Finding::new(FindingCode::Growth, message)
        .at(if candidate.trend == Trend::Level { at } else { candidate.until })
        .with_bytes(most)
        .with_evidence(Evidence::Site(candidate.stack.0))
        .with_remedy(bound_cache());
    (label, finding)
}

/// Returns the caches, by their names, that hold much at the peak, and most of whose entries have been freed again.
fn caches(context: &RuleContext<'_>) -> impl Iterator<Item = (String, Finding)> {
    let usage = context.case.usage;
    let position = usage.peak_position;
    let mut lines = by_line(context, &held_at(context.case.replay, position));
    lines.retain(|(_, held)| {
        is_share(held.bytes, usage.peak_bytes, GROWTH_PERCENT) && is_cache(&context.label(held.stack))
    });
    let mut made: FxHashMap<Option<FrameId>, u64> = lines.iter().map(|(frame, _)| (*frame, 0)).collect();
    if !made.is_empty() {
        for (stack, site) in usage.iter() {
            if let Some(made) = made.get_mut(&context.frame(stack)) {
                *made += u64::from(site.count);
            }
        }
    }
    let found = lines.into_iter().map(move |(frame, held)| (held, made.get(&frame).copied().unwrap_or(0)));
    // A library's workspaces are two.
    let found = found.filter(|(held, made)| held.count > 2 && *made >= u64::from(held.count) * 2);
    found.map(move |(held, made)| {
        let label = context.label(held.stack);
        let line = line_in_sentence(&label);
        let percent = percent(held.bytes, usage.peak_bytes);
        let message = format!(
            "{line}, a cache by its name, held {} at the peak of requested memory (after event {}): {percent} % of it, in {} of \
             the {} that it made. It grows and is freed again.",
            Bytes(held.bytes),
            Count(position.into()),
            Count(held.count.into()),
            Count(made),
        );
        let finding = Finding::new(FindingCode::Growth, message)
            .at(position)
            .with_bytes(held.bytes)
            .with_evidence(Evidence::Site(held.stack.0))
            .with_remedy(bound_cache());
        (label, finding)
    })
}

fn bound_cache() -> Remedy {
    Remedy::advice("Bound it: fewer entries or concurrent requests, or pages of one size that are used again.")
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;

    /// Steps that each use a layer and put a tensor of 1 MiB into `line`; a tensor leaves after `kept` steps.
    fn found(line: &str, steps: u64, kept: u64) -> Vec<String> {
        let mut lines = "segment_alloc 0x10000000 524288000\n".to_owned();
        for step in 0..steps {
            for layer in 1..11 {
                lines += &format!("alloc 0x10000000 4000000 layer@/m/l.py:{}\nfree 0x10000000\n", layer % 2);
            }
            let address = 0x1100_0000 + (step % kept) * (1 << 20);
            if step >= kept {
                lines += &format!("free {address}\n");
            }
            lines += &format!("alloc {address} 1048576 {line}\n");
        }
        trace(&lines).messages(FindingCode::Growth)
    }

    #[test]
    fn caches_that_grow_are_noted() {
        assert_eq!(
            found("update@/m/kv_cache.py:8", 40, 1_000),
            [
                "m/kv_cache.py:8 (update) fills a cache, by its name: 40 allocations, 40.0 MiB, were still live after event 1,241. \
              It is not counted as a leak."
            ]
        );
        assert_eq!(
            found("update@/m/cache.py:8", 100, 10),
            [
                "m/cache.py:8 (update), a cache by its name, held 10.0 MiB at the peak of requested memory (after event 312): 72 \
              % of it, in 10 of the 100 that it made. It grows and is freed again."
            ]
        );
    }

    #[test]
    fn a_buffer_that_is_full_after_half_of_the_run_is_noted() {
        let messages = found("remember@/m/a.py:8", 100, 55);
        let [message] = messages.as_slice() else { panic!("{messages:?}") };
        assert!(message.starts_with("m/a.py:8 (remember) grew up to "), "{message}");
    }

    #[test]
    fn a_buffer_that_is_full_at_once_is_not() {
        assert_eq!(found("remember@/m/a.py:8", 100, 10), [""; 0]);
    }
}
