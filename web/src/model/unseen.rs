//! Tells changes that no component shows, so that none is rendered for them.

use std::mem::{Discriminant, discriminant};

use wire::SessionState;

use super::state::{FileKey, Model, Phase};

/// Returns whether the page shows anything of what a session's worker told. While another file is shown, that is what menus
/// say of the session.
pub fn is_noticed(before: &Model, after: &Model, session: FileKey) -> bool {
    fn said(model: &Model, session: FileKey) -> Option<(&str, Discriminant<Phase>, Option<SessionState>)> {
        let file = model.entry(session)?;
        Some((&file.name, discriminant(&file.phase), file.live.as_ref().map(|live| live.status.state)))
    }
    let is_shown = after.current == Some(session) || after.shown_base().is_some_and(|(base, _)| base == session);
    is_shown || said(before, session) != said(after, session) || before.link != after.link
}
