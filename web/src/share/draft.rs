//! What was entered in the dialog, kept while the page is open: a dialog that is closed by mistake loses nothing. A password
//! is kept in memory only.

use std::cell::RefCell;

use super::choices::Choices;
use crate::model::FileKey;
use crate::source::shares::Terms;

/// What was entered for one trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// The choices.
    pub choices: Choices,
    /// The name; `None` if it was left alone.
    pub name: Option<String>,
    /// The terms; `None` if they were left alone.
    pub terms: Option<Terms>,
}

thread_local! {
    /// What was entered last, and for which trace.
    static NEWEST: RefCell<Option<(FileKey, Draft)>> = const { RefCell::new(None) };
}

/// Returns what was entered for a trace.
pub fn of(key: Option<FileKey>) -> Draft {
    NEWEST.with_borrow(|newest| match newest {
        Some((known, draft)) if Some(*known) == key => draft.clone(),
        _ => Draft::default(),
    })
}

/// Keeps what was entered for a trace.
pub fn keep(key: Option<FileKey>, draft: Draft) {
    NEWEST.set(key.map(|key| (key, draft)));
}

/// Forgets what was entered: it was shared.
pub fn forget() {
    NEWEST.set(None);
}
