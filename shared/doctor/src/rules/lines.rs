//! The memory of stacks, summed by the line that represents them.

use rustc_hash::FxHashMap;

use super::RuleContext;
use super::thresholds::NAMED_LINES;
use analysis::peak::Held;
use trace::frames::FrameId;
use trace::order::SortFew;
use trace::units::{Count, counted_as};

/// The memory of one line; `None` for memory without a stack.
pub(super) type LineHeld = (Option<FrameId>, Held);

/// Returns what each line holds, the most bytes first; equal ones by stack.
pub(super) fn by_line(context: &RuleContext<'_>, held: &[Held]) -> Vec<LineHeld> {
    let mut lines: FxHashMap<Option<FrameId>, Held> = FxHashMap::default();
    for held in held {
        let own = lines.entry(context.frame(held.stack)).or_insert(Held { bytes: 0, count: 0, ..*held });
        own.bytes = own.bytes.saturating_add(held.bytes);
        own.count = own.count.saturating_add(held.count);
    }
    let mut lines: Vec<LineHeld> = lines.into_iter().collect();
    lines.sort_few_by(|(_, a), (_, b)| b.bytes.cmp(&a.bytes).then(a.stack.cmp(&b.stack)));
    lines
}

/// Says which lines made most blocks: `12 came from train.py:7 (keep) and 1 from train.py:3 (load)`.
pub(super) fn most_blocks(context: &RuleContext<'_>, lines: &[LineHeld]) -> String {
    if let [(_, held)] = lines {
        let came = if held.count == 1 { "It came" } else { "They came" };
        return format!("{came} from {}", maker(context, held));
    }
    let mut lines: Vec<&Held> = lines.iter().map(|(_, held)| held).collect();
    lines.sort_few_by(|a, b| b.count.cmp(&a.count).then(a.stack.cmp(&b.stack)));
    let named = lines.iter().take(NAMED_LINES).enumerate();
    let named: Vec<String> = named
        .map(|(i, held)| {
            let came = if i == 0 { " came" } else { "" };
            format!("{}{came} from {}", Count(held.count.into()), maker(context, held))
        })
        .collect();
    match lines.len().saturating_sub(NAMED_LINES) {
        0 => named.join(" and "),
        more => {
            let others = counted_as(more as u64, "other line", "other lines");
            format!("{}, and the rest from {others}", named.join(", "))
        }
    }
}

/// Names what made blocks: its line, or that there is none.
fn maker(context: &RuleContext<'_>, held: &Held) -> String {
    context.known(held.stack).unwrap_or_else(|| "calls without a recorded stack".to_owned())
}
