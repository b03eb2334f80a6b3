//! Which parts of the model a change concerns, so that it renders only what shows them.

use super::state::Model;

/// Parts of the model: those that change as a person looks around, and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts(u8);

impl Parts {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// What the pointer is over in a list.
    pub const HINT: Self = Self(1);
    /// The visible part of the axis, and what views are magnified to.
    pub const WINDOW: Self = Self(1 << 1);
    /// The cursor, and whether the window follows it.
    pub const CURSOR: Self = Self(1 << 2);
    /// The selection.
    pub const SELECTION: Self = Self(1 << 3);
    /// The steps that Back and Forward go through.
    pub const HISTORY: Self = Self(1 << 4);
    /// Everything else. It changes seldom, so it is not divided further.
    pub const REST: Self = Self(1 << 5);
    /// Where a person is: the cursor, the selection, and the rest.
    pub const PLACE: Self = Self::CURSOR.and(Self::SELECTION).and(Self::REST);
    /// What a picture shows: the place, and the window.
    pub const VIEW: Self = Self::PLACE.and(Self::WINDOW);
    /// The whole model.
    pub const ALL: Self = Self(u8::MAX);

    /// Returns the parts in which two models differ.
    pub fn changed(before: &Model, after: &Model) -> Self {
        let (from, to) = (&before.view, &after.view);
        let looks = [
            (before.hint != after.hint, Self::HINT),
            (from.window != to.window || from.zooms != to.zooms, Self::WINDOW),
            ((from.cursor, from.follows_cursor) != (to.cursor, to.follows_cursor), Self::CURSOR),
            (from.selection != to.selection, Self::SELECTION),
            (before.history != after.history, Self::HISTORY),
        ];
        let changed =
            looks.into_iter().filter(|(is_changed, _)| *is_changed).fold(Self::NONE, |all, (_, part)| all.and(part));
        let mut looked = before.clone();
        (looked.hint, looked.history) = (after.hint, after.history.clone());
        (looked.view.window, looked.view.zooms) = (to.window, to.zooms.clone());
        (looked.view.cursor, looked.view.follows_cursor, looked.view.selection) =
            (to.cursor, to.follows_cursor, to.selection);
        if looked == *after { changed } else { changed.and(Self::REST) }
    }

    /// Returns these parts and others.
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns whether one of these parts is among others.
    pub const fn is_among(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use query::Window;

    use super::*;
    use crate::model::testing::{added, after, read};
    use crate::model::{Action, Dialog, Selection, Tab, update};

    #[test]
    fn a_change_concerns_what_it_changes() {
        let file = after([added(0, "a"), read(0, &[1_000]), Action::SetTab(Tab::Heatmap), Action::Rested]);
        for (action, want) in [
            (Action::Rested, Parts::NONE),
            (Action::Hint(Some(Selection::Allocation(1))), Parts::HINT),
            (Action::SetWindow(Window { start: 10.0, end: 90.0 }), Parts::WINDOW.and(Parts::HISTORY)),
            (Action::SetCursor(5), Parts::CURSOR),
            (Action::OpenDialog(Dialog::Help), Parts::REST),
            (Action::SetTab(Tab::Events), Parts::REST.and(Parts::HISTORY)),
        ] {
            assert_eq!(Parts::changed(&file, &update(&file, action.clone())), want, "{action:?}");
        }
    }
}
