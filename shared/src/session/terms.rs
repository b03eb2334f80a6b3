//! Search terms that were evaluated, kept while they are in use.

use std::sync::Arc;

use super::context::Context;
use crate::analysis::matches::Matches;
use crate::query::term::{End, Term};

/// Terms kept for one device. A person has a handful of filters and one search; the rest are keystrokes on the way.
/// Each takes one bit an allocation.
const KEPT: usize = 16;

/// A term that was evaluated.
#[derive(Clone, Debug)]
struct Evaluated {
    /// What it matches.
    pub matches: Arc<Matches>,
    /// The largest sum of that, in bytes, that was active at once; found when first asked for.
    peak_bytes: Option<u64>,
}

/// The terms of one device, the one used last at the end.
#[derive(Debug, Default)]
pub struct Terms {
    kept: Vec<(String, Evaluated)>,
    /// The positions that they know.
    until: u32,
}

/// Whether a term says of an allocation for good what it says now, whatever happens later.
pub(super) fn lasts(term: &str) -> bool {
    !matches!(Term::parse(term), Ok(Term::Live(End::End)))
}

impl Terms {
    /// What a term matches; a sentence when it can't be understood.
    pub fn matches(&mut self, context: Context<'_>, term: &str) -> Result<Arc<Matches>, String> {
        Ok(Arc::clone(&self.evaluate(context, term)?.matches))
    }

    /// The largest sum of requested bytes that was active at once of what a term matches.
    pub fn peak_bytes(&mut self, context: Context<'_>, term: &str) -> Result<u64, String> {
        let evaluated = self.evaluate(context, term)?;
        let matches = &evaluated.matches;
        Ok(*evaluated.peak_bytes.get_or_insert_with(|| matches.peak_bytes(context.trace, context.replay)))
    }

    /// What a highlighted term matches; `None` when none is set, or nothing is typed yet.
    pub fn highlight(&mut self, context: Context<'_>, term: Option<&str>) -> Result<Option<Arc<Matches>>, String> {
        term.filter(|term| !term.trim().is_empty()).map(|term| self.matches(context, term)).transpose()
    }

    /// What all of some terms match together; `None` when there is no term, and everything passes.
    pub fn all(&mut self, context: Context<'_>, terms: &[String]) -> Result<Option<Arc<Matches>>, String> {
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

    /// Bytes of memory that they take, about.
    pub(super) fn bytes(&self) -> usize {
        self.kept.iter().map(|(_, evaluated)| evaluated.matches.memory()).sum()
    }

    fn evaluate(&mut self, context: Context<'_>, term: &str) -> Result<&mut Evaluated, String> {
        if self.until != context.replay.positions() {
            self.until = context.replay.positions();
            self.kept.clear();
        }
        let found = match self.kept.iter().position(|(text, _)| text == term) {
            Some(i) => self.kept.remove(i),
            None => {
                let matches = Arc::new(Matches::of(&Term::parse(term)?, context.field()));
                (term.to_owned(), Evaluated { matches, peak_bytes: None })
            }
        };
        if self.kept.len() >= KEPT {
            self.kept.remove(0);
        }
        self.kept.push(found);
        let last = self.kept.len() - 1;
        Ok(&mut self.kept[last].1)
    }
}
