//! Which of the user's own rules fits a stack.

use query::own_rules::UserRules;
use trace::frames::{FrameId, StackId, Symbols};

use super::Category;
use crate::frame_matcher::FrameMatcher;

/// Returns the category of each rule.
pub(super) fn categories(rules: &UserRules) -> Vec<Category> {
    rules.rules().iter().map(|rule| rule.category).collect()
}

/// Returns for each stack the number of the first rule that fits one of its frames; empty without rules.
pub(super) fn by_stack(rules: &UserRules, symbols: &Symbols) -> Vec<Option<u8>> {
    if rules.rules().is_empty() {
        return Vec::new();
    }
    let patterns: Vec<FrameMatcher> = rules.rules().iter().map(|rule| FrameMatcher::text(rule.part.trim())).collect();
    let of_frame = |id: u32| {
        let frame = symbols.frame(FrameId(id));
        let fits = patterns.iter().position(|pattern| pattern.fits_frame(symbols, frame));
        fits.and_then(|rule| u8::try_from(rule).ok())
    };
    let frames: Vec<Option<u8>> = (0..symbols.frame_count() as u32).map(of_frame).collect();
    let of_stack = |id: u32| {
        let rules = symbols.stack(StackId(id)).iter().filter_map(|frame| frames.get(frame.0 as usize).copied()?);
        rules.min()
    };
    (0..symbols.stack_count() as u32).map(of_stack).collect()
}
