//! The state at the cursor. All that show it ask the same question, which the worker answers once.

use std::rc::Rc;

use query::{Answer, Query, StateQuery};
use yew::prelude::*;

use super::{ModelHandle, use_answer};

/// Returns the last answer about the cursor: its state, or why previews don't tell it. While a newer one is on its way, it is of an
/// earlier position.
#[hook]
pub fn use_cursor(model: &ModelHandle) -> Option<Rc<Answer>> {
    use_answer(Some(Query::State(StateQuery { position: model.view.cursor })))
}
