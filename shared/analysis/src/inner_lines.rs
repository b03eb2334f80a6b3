//! The lines inside a line that holds most of the memory. A line such as `trainer.train()` says nothing by itself.

use rustc_hash::FxHashMap;

use super::best_frames::BestFrames;
use super::peak::Held;
use super::site::{frame_label, label};
use query::diagnosis::{HeldLine, InnerLines};
use trace::frames::Symbols;
use trace::order::SortFew;

/// From this percentage of the memory on, a line is unfolded.
const MOST_PERCENT: u64 = 60;
/// The lines inside that are kept.
const LINES: usize = 5;

/// Unfolds the line that holds most, if it holds more than 60 % of the memory, and called lines that have names.
pub fn inner_lines(symbols: &Symbols, best: &BestFrames, held: &[Held]) -> Option<InnerLines> {
    let mut bytes_of: FxHashMap<String, u64> = FxHashMap::default();
    let mut whole = 0_u64;
    for held in held {
        let bytes = bytes_of.entry(label(symbols, best, held.stack)).or_default();
        (*bytes, whole) = (bytes.saturating_add(held.bytes), whole.saturating_add(held.bytes));
    }
    let (line, bytes) = bytes_of.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    if u128::from(bytes) * 100 <= u128::from(whole) * u128::from(MOST_PERCENT) {
        return None;
    }
    let mut lines: Vec<HeldLine> = Vec::new();
    for held in held {
        let stack = symbols.stack(held.stack);
        let is_own = best.frame(stack).is_some_and(|frame| best.is_own(frame));
        if !is_own || label(symbols, best, held.stack) != line {
            continue;
        }
        let inner = best.inner_frame(stack).map(|frame| frame_label(symbols, symbols.frame(frame)));
        let inner = inner.unwrap_or_else(|| line.clone());
        match lines.iter_mut().find(|known| known.line == inner) {
            Some(known) => {
                known.bytes = known.bytes.saturating_add(held.bytes);
                known.count = known.count.saturating_add(held.count);
            }
            None => lines.push(HeldLine { line: inner, stack: held.stack.0, bytes: held.bytes, count: held.count }),
        }
    }
    lines.sort_few_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.line.cmp(&b.line)));
    lines.truncate(LINES);
    lines.iter().any(|inner| inner.line != line).then_some(InnerLines { line, lines })
}

#[cfg(test)]
mod tests {
    use super::*;
    use replay::index::Index;
    use trace::frames::StackId;

    #[test]
    fn a_line_that_holds_most_is_unfolded_into_what_it_called() {
        let mut symbols = Symbols::default();
        let train = "train@/home/me/train.py:33";
        let linear = "linear@/x/site-packages/torch/nn/functional.py:9";
        let mlp = "forward@/x/site-packages/transformers/models/llama/modeling_llama.py:240";
        let norm = "forward@/x/site-packages/transformers/models/llama/modeling_llama.py:61";
        let stacks: Vec<StackId> = [&[linear, mlp, train][..], &[norm, train], &[train], &["load@/home/me/data.py:4"]]
            .into_iter()
            .map(|stack| trace::testing::stack(&mut symbols, stack))
            .collect();
        let mut best = BestFrames::default();
        best.extend(&symbols);
        let unfolded = |bytes: [u64; 4]| {
            let held = stacks.iter().zip(bytes).filter(|(_, bytes)| *bytes > 0);
            let held: Vec<Held> = held.map(|(&stack, bytes)| Held { stack, bytes, count: 1 }).collect();
            inner_lines(&symbols, &best, &held)
        };
        let found = unfolded([50, 30, 5, 15]).expect("most of it is one line's");
        assert_eq!(found.line, "train  me/train.py:33");
        let lines: Vec<(&str, u64)> = found.lines.iter().map(|held| (held.line.as_str(), held.bytes)).collect();
        assert_eq!(
            lines,
            [
                ("forward  llama/modeling_llama.py:240", 50),
                ("forward  llama/modeling_llama.py:61", 30),
                ("train  me/train.py:33", 5),
            ]
        );
        // Less than that, or nothing to unfold.
        assert_eq!(unfolded([30, 20, 10, 40]), None);
        assert_eq!(unfolded([0, 0, 40, 0]), None);
        assert_eq!(inner_lines(&symbols, &best, &[]), None);
    }
}
