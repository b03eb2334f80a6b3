//! Evaluated search terms, kept while they are in use.

use std::sync::Arc;

use super::caches::Cache;
use super::context::Context;
use analysis::frame_matcher;
use analysis::matches::Matches;
use analysis::term_matches::{TermMatches, is_permanent};
use query::term::Term;
use replay::index::{Index, RecentCache};

/// Terms kept for one device. A person has a handful of filters and one search; the rest are keystrokes on the way.
/// Each takes one bit an allocation.
const KEPT: usize = 16;

/// A term that was evaluated.
#[derive(Debug)]
struct Evaluated {
    term: Term,
    matches: TermMatches,
    /// The largest sum of the matches' bytes that was active at once; `None` until it is asked for.
    peak_bytes: Option<u64>,
}

/// The terms of one device.
#[derive(Debug, Default)]
pub(super) struct Terms {
    kept: RecentCache<String, Evaluated, KEPT>,
}

/// Returns whether later events never change which of the earlier allocations a term matches.
pub(super) fn is_permanent_text(term: &str) -> bool {
    Term::parse(term).is_ok_and(|term| is_permanent(&term))
}

impl Terms {
    /// Returns the allocations that a term matches, or a sentence if it can't be parsed.
    pub(super) fn matches(&mut self, context: Context<'_>, term: &str) -> Result<Arc<Matches>, String> {
        Ok(Arc::clone(self.evaluate(context, term)?.matches.matches()))
    }

    /// Returns the largest sum of requested bytes, of the allocations that a term matches, that was active at once.
    pub(super) fn peak_bytes(&mut self, context: Context<'_>, term: &str) -> Result<u64, String> {
        let Evaluated { matches, peak_bytes, .. } = self.evaluate(context, term)?;
        Ok(*peak_bytes.get_or_insert_with(|| matches.matches().peak_bytes(context.trace, context.replay)))
    }

    /// Returns what a highlighted term matches; `None` if there is no term, or an empty one.
    pub(super) fn highlight(
        &mut self,
        context: Context<'_>,
        term: Option<&str>,
    ) -> Result<Option<Arc<Matches>>, String> {
        term.filter(|term| !term.trim().is_empty()).map(|term| self.matches(context, term)).transpose()
    }

    /// Returns the allocations that all of some terms match; `None` without terms, when all match.
    pub(super) fn all(&mut self, context: Context<'_>, terms: &[String]) -> Result<Option<Arc<Matches>>, String> {
        let mut all: Option<Arc<Matches>> = None;
        for term in terms {
            let next = self.matches(context, term)?;
            all = Some(match all {
                Some(before) => Arc::new(before.and(&next, context.replay)),
                None => next,
            });
        }
        Ok(all)
    }

    /// Returns whether each frame matches a term; `None` if the term is invalid, or not one for frames.
    pub(super) fn frames(&mut self, context: Context<'_>, term: &str) -> Option<Vec<bool>> {
        let Evaluated { term, matches, .. } = self.evaluate(context, term).ok()?;
        matches.frames(term)
    }

    /// Returns the first of several terms that matches nothing by itself; `None` if all do, and of a single term.
    pub(super) fn first_empty(&mut self, context: Context<'_>, term: &str) -> Option<Term> {
        let Evaluated { term, matches, .. } = self.evaluate(context, term).ok()?;
        matches.first_empty(term).cloned()
    }

    fn evaluate(&mut self, context: Context<'_>, text: &str) -> Result<&mut Evaluated, String> {
        let known = self.kept.remove(text);
        let mut evaluated = match known {
            Some(known) => known,
            None => {
                let term = Term::parse(text)?;
                frame_matcher::check(&term)?;
                Evaluated { term, matches: TermMatches::default(), peak_bytes: None }
            }
        };
        if !evaluated.matches.is_current(context.replay.positions()) {
            evaluated.matches.extend((&evaluated.term, context.field()));
            evaluated.peak_bytes = None;
        }
        Ok(self.kept.insert(text.to_owned(), evaluated))
    }
}

impl Cache for Terms {
    fn bytes(&self) -> usize {
        self.kept.values().map(|evaluated| evaluated.matches.bytes()).sum()
    }

    fn forget_categories(&mut self) {
        *self = Self::default();
    }
}
