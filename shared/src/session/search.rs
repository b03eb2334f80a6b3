//! The matches of a search term, and steps from hit to hit.

use super::context::Context;
use super::device::Caches;
use crate::query::{Answer, Hit, SearchResult};

/// Answers [`Query::Search`](crate::query::Query::Search).
pub(super) fn search(context: Context<'_>, caches: &mut Caches, term: &str) -> Answer {
    let term = term.to_owned();
    let found = caches.terms.matches(context, &term).and_then(|m| Ok((m, caches.terms.peak_bytes(context, &term)?)));
    Answer::Search(match found {
        Ok((matches, peak_bytes)) => {
            SearchResult { term, count: matches.count, bytes: matches.bytes, peak_bytes, error: None }
        }
        Err(sentence) => SearchResult { term, count: 0, bytes: 0, peak_bytes: 0, error: Some(sentence) },
    })
}

/// Answers [`Query::NextHit`](crate::query::Query::NextHit). The first hit follows the last one.
pub(super) fn next(context: Context<'_>, caches: &mut Caches, term: &str, from: Option<u32>, forward: bool) -> Answer {
    let matches = match caches.terms.matches(context, term) {
        Ok(matches) => matches,
        Err(sentence) => return Answer::Refused(sentence),
    };
    let found = if forward {
        from.and_then(|id| matches.first_from(id.checked_add(1)?)).or_else(|| matches.first_from(0))
    } else {
        from.and_then(|id| matches.last_before(id)).or_else(|| matches.last_before(u32::MAX))
    };
    Answer::Hit(found.map(|allocation| Hit {
        allocation,
        position: context.replay.allocations.begin.get(allocation as usize).unwrap_or(0),
        number: matches.rank(allocation) + 1,
        of: matches.count,
    }))
}
