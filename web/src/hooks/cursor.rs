//! The state at the cursor, which is asked for once, whoever shows it.

use std::rc::Rc;

use query::{Answer, Query, StateQuery};
use yew::prelude::*;

use super::{use_answer, use_model};

/// The last answer about the cursor. While a newer one is on its way, it is of an earlier position.
#[derive(Clone)]
struct CursorAnswer(Option<Rc<Answer>>);

impl PartialEq for CursorAnswer {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ref().map(Rc::as_ptr) == other.0.as_ref().map(Rc::as_ptr)
    }
}

/// Properties of [`CursorProvider`].
#[derive(Properties, PartialEq)]
pub struct CursorProviderProps {
    /// What may use [`use_cursor`].
    pub children: Html,
}

/// Provides the state at the cursor to what is inside.
#[component]
pub fn CursorProvider(props: &CursorProviderProps) -> Html {
    let position = use_model().view.cursor;
    let answer = use_answer(Some(Query::State(StateQuery { position })));
    html! {
        <ContextProvider<CursorAnswer> context={CursorAnswer(answer)}>{ props.children.clone() }</ContextProvider<CursorAnswer>>
    }
}

/// Returns the last answer about the cursor: its state, or why previews don't tell it.
#[hook]
pub fn use_cursor() -> Option<Rc<Answer>> {
    use_context::<CursorAnswer>().and_then(|answer| answer.0)
}
