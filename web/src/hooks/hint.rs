//! What the pointer is over in a list, so that pictures show where it is.

use yew::prelude::*;

use crate::model::Selection;

/// The row under the pointer: pictures draw it as if it were selected. It is not part of the model, since it changes with every
/// movement, and only lists and pictures need it.
#[derive(Clone, PartialEq)]
pub struct Hint(UseStateHandle<Option<Selection>>);

impl Hint {
    /// Returns what a picture shows as selected: the row under the pointer, or else the selection.
    pub fn or(&self, selection: Selection) -> Selection {
        self.0.unwrap_or(selection)
    }

    /// Returns a callback that sets the row under the pointer.
    pub fn sends(&self, row: Option<Selection>) -> Callback<PointerEvent> {
        let set = self.0.setter();
        Callback::from(move |event: PointerEvent| {
            // A finger that scrolls a list points at nothing.
            if row.is_none() || event.pointer_type() == "mouse" {
                set.set(row);
            }
        })
    }
}

/// Creates the hint of a page of views, which provides it to them.
#[hook]
pub fn use_new_hint() -> Hint {
    Hint(use_state_eq(|| None))
}

/// Returns the hint. The component renders again when it changes.
#[hook]
pub fn use_hint() -> Hint {
    use_context::<Hint>().expect("lists and pictures live inside the workbench, which provides the hint")
}
