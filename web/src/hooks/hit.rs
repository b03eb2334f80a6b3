//! Goes from match to match of the search.

use std::rc::Rc;

use query::{Answer, Hit, NextHitQuery, Query};
use yew::Callback;

use super::{ModelHandle, ask};
use crate::model::{Action, Selection};

/// Selects the next or previous allocation that matches the search, moves the cursor there, and sends the match; `None` if
/// nothing matches.
pub fn to_hit(model: &ModelHandle, forward: bool, found: Callback<Option<Hit>>) {
    let now = model.now();
    let Some(term) = now.view.highlight.clone() else { return };
    let from = match now.view.selection {
        Selection::Allocation(id) => Some(id),
        _ => None,
    };
    // Ahead of the newest event there is nothing that the page shows yet.
    let is_following = now.live().is_some_and(|live| live.is_following);
    let forward = forward && (from.is_some() || !is_following);
    let handle = model.clone();
    ask(
        model,
        Query::NextHit(NextHitQuery { term, from, position: now.view.cursor, forward }),
        Callback::from(move |answer: Rc<Answer>| {
            let Answer::NextHit(hit) = *answer else { return };
            found.emit(hit);
            if let Some(hit) = hit {
                handle.dispatch(Action::Select(Selection::Allocation(hit.allocation)));
                handle.dispatch(Action::SetCursor(hit.position));
            }
        }),
    );
}
