//! Links that were read: to which file each is applied, and what is said about it.

use query::Summary;
use query::link::{FileHash, Link, Read};

use super::{entry, select_file, sessions};
use crate::model::base::{Base, is_of};
use crate::model::state::{FileEntry, FileKey, Model, Notice, Phase, Shared};
use crate::model::view::{Tab, View};

/// Said where a link without a hash is applied.
const NAME_ONLY: &str = "The link names only the file, so Vramscope can't tell whether it is the same one.";

/// How many things a notice lists at most.
const LISTED: usize = 5;

/// Whether a link is for a file or session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is.
    Same,
    /// The names are equal, and the link says nothing about the content.
    Named,
    /// The names are equal, but the contents differ.
    Differs,
    /// The identity of the file is not known yet.
    Unknown,
    /// It is for another one.
    Other,
}

/// Returns whether a link is for a file or session.
fn fit(link: &Link, file: &FileEntry) -> Fit {
    let is_named = link.file.as_ref() == Some(&file.name);
    match (&file.live, link.hash, file.hash) {
        _ if !link.is_bound() => Fit::Same,
        (Some(live), ..) if link.session.as_ref() == Some(&live.session) => Fit::Same,
        (Some(_), ..) => Fit::Other,
        _ if link.session.is_some() => Fit::Other,
        // The path says which trace is meant.
        _ if file.shared.is_some() => Fit::Same,
        (_, Some(wanted), Some(found)) if wanted == found => Fit::Same,
        (_, Some(_), Some(_)) if is_named => Fit::Differs,
        (_, Some(_), None) => Fit::Unknown,
        (_, None, _) if is_named => Fit::Named,
        _ => Fit::Other,
    }
}

/// Returns whether the link that waits is, as far as its name tells, for a file.
pub(super) fn is_awaited(model: &Model, file: &FileEntry) -> bool {
    model.link.as_ref().is_some_and(|link| link.is_bound() && link.file.as_ref() == Some(&file.name))
}

/// Keeps what was read of a file, and applies the link that waits for it.
pub(super) fn loaded(model: &mut Model, key: FileKey, summary: &Shared<Summary>) {
    let Some(file) = model.entry(key) else { return };
    let found = model.link.as_ref().map(|link| fit(link, file));
    // The previews of a shared trace always show all of it.
    let is_shared = file.shared.is_some();
    let mut first = if is_shared { model.preferences.first(summary) } else { model.preferences.opened(summary) };
    if let Some((base, device)) = entry(model, key).and_then(|file| file.compared_with.take()) {
        first.show(Tab::Compare);
        first.base = Some(Base::Open(base, device));
    }
    let returns = entry(model, key).is_some_and(|file| std::mem::take(&mut file.returns));
    if returns {
        // The file has the same content as before, so its view is still valid.
    } else if model.current == Some(key) {
        model.view = first.clone();
    } else if let Some(file) = entry(model, key) {
        file.view = first.clone();
    }
    if let Some(file) = entry(model, key) {
        file.phase = Phase::Ready { summary: summary.clone(), is_pictured: false };
    }
    let is_current = model.current == Some(key);
    match found {
        Some(Fit::Same) => apply(model, key),
        Some(Fit::Named) if is_current => apply(model, key),
        Some(Fit::Named) => {
            if let (Some(link), Some(file)) = (model.link.take(), entry(model, key)) {
                file.view = View::restore(&link, summary);
            }
        }
        Some(_) if is_current => settle(model, key),
        _ => {}
    }
    let shown = if is_current { Some(&model.view) } else { model.entry(key).map(|file| &file.view) };
    // Not with the view of a link.
    let is_as_opened = !is_shared && !returns && shown == Some(&first);
    if let Some(file) = entry(model, key) {
        file.is_as_opened = is_as_opened;
    }
}

/// Drops the link that waits, because none of the files that were opened is its file. The address bar refers to the
/// current file from now on.
fn settle(model: &mut Model, key: FileKey) {
    let is_loading = |file: &FileEntry| file.live.is_none() && matches!(file.phase, Phase::Loading { .. });
    let is_unknown = |file: &FileEntry| model.link.as_ref().is_some_and(|link| fit(link, file) == Fit::Unknown);
    // Several files were dropped together: the link's may still be among them, under another name.
    let may_come = model.link.as_ref().is_some_and(|link| link.hash.is_some());
    if model.files.iter().any(|file| is_unknown(file) || may_come && is_loading(file)) {
        return;
    }
    let base = model.link.as_ref().and_then(|link| link.base.as_ref());
    if let (Some(link), Some(base)) = (&model.link, base)
        && model.entry(key).is_some_and(|file| is_of(file, base))
    {
        let name = shortened(link.file.as_deref().unwrap_or("the other file"));
        model.notice = Some(format!("This is run A of the link's comparison. Open “{name}”, too, which is B.").into());
        return;
    }
    let Some(link) = model.link.take() else { return };
    if model.entry(key).is_some_and(|file| fit(&link, file) == Fit::Differs) {
        return withhold(model, key, link);
    }
    let said = match (&link.file, link.hash) {
        (Some(name), _) => {
            let name = shortened(name);
            format!("The link is for “{name}”. This is a different file, so it opens with the default view.")
        }
        (None, Some(_)) => "The link is for a different file, so this one opens with the default view.".to_owned(),
        // The link is for a session.
        (None, None) => return,
    };
    model.notice = Some(said.into());
}

/// Keeps the identity of a file, and applies a link that waits for it.
pub(super) fn hashed(model: &mut Model, key: FileKey, hash: FileHash) {
    let Some(file) = entry(model, key) else { return };
    file.hash = Some(hash);
    // A file that is still being read is compared once it has been.
    let is_read = file.summary().is_some();
    let Some((link, file)) = model.link.clone().zip(model.entry(key)).filter(|_| is_read) else { return };
    match fit(&link, file) {
        Fit::Same if link.is_bound() => apply(model, key),
        Fit::Differs => {
            model.link = None;
            withhold(model, key, link);
        }
        _ => {}
    }
}

/// Follows a link: immediately if its file or session is open, otherwise once it is.
pub(super) fn follow(model: &mut Model, link: Box<Read>) {
    let current = model.file().filter(|_| !link.is_bound());
    let ready = |fits: &[Fit]| {
        let mut files = current.into_iter().chain(&model.files);
        files.find(|file| file.summary().is_some() && fits.contains(&fit(&link, file))).map(|file| file.key)
    };
    // A file that was put away is read again first. The link waits for that.
    let is_away = |file: &&FileEntry| file.phase == Phase::Away && matches!(fit(&link, file), Fit::Same | Fit::Named);
    let away = model.files.iter().find(is_away).filter(|_| link.is_bound()).map(|file| file.key);
    let (found, other) = (ready(&[Fit::Same]).or_else(|| ready(&[Fit::Named])), ready(&[Fit::Differs]));
    model.link = Some(link.clone());
    if let Some(key) = found {
        apply(model, key);
    } else if let Some(key) = away {
        select_file(model, key);
    } else if let Some(key) = other {
        // The link goes on waiting: its own file may be opened next.
        withhold(model, key, link);
    }
}

/// Shows a file that has been read with the link that waits.
fn apply(model: &mut Model, key: FileKey) {
    let Some(link) = model.link.take() else { return };
    let Some(file) = model.entry(key) else { return };
    let Some(summary) = file.summary().cloned() else { return };
    let is_by_name = fit(&link, file) == Fit::Named;
    // The positions of a session move while it is watched.
    let missing = if file.live.is_some() { Vec::new() } else { View::missing(&link, &summary) };
    select_file(model, key);
    model.view = View::restore(&link, &summary);
    sessions::follow_link(model, &link);
    if let Some(said) = said(&link, &missing, is_by_name) {
        model.notice = Some(said.into());
    }
}

/// Uses up the link that waits: its session has been opened with it.
pub(super) fn used(model: &mut Model) {
    if let Some(said) = model.link.take().and_then(|link| said(&link, &[], false)) {
        model.notice = Some(said.into());
    }
}

/// Says that a file is not the link's, and lets the user apply the link nevertheless.
fn withhold(model: &mut Model, key: FileKey, link: Box<Read>) {
    select_file(model, key);
    let name = shortened(link.file.as_deref().unwrap_or_default());
    let text = format!(
        "This file is named “{name}” like the one of the link, but its content differs. The link's view was not applied."
    );
    model.notice = Some(Notice { text, withheld: Some((key, link)), is_waiting: false });
}

/// Applies the link that the notice is about.
pub(super) fn apply_withheld(model: &mut Model) {
    let Some((key, mut link)) = model.notice.take().and_then(|notice| notice.withheld) else { return };
    // That the content differs has been said.
    link.link.hash = model.entry(key).and_then(|file| file.hash);
    model.link = Some(link);
    apply(model, key);
}

/// Returns what is to be said about a link that was applied; usually nothing.
fn said(link: &Read, missing: &[&'static str], is_by_name: bool) -> Option<String> {
    let all = [link.unread.as_slice(), missing].concat();
    let mut sentences = Vec::new();
    if link.is_newer {
        sentences.push("This link is from a newer version of Vramscope.".to_owned());
        sentences.push(match all.as_slice() {
            [] => "Its view was restored.".to_owned(),
            all => format!("Not restored: {}.", listed(all)),
        });
    } else if !link.unread.is_empty() {
        sentences.push(format!("Part of this link could not be read: {}.", listed(&all)));
    } else if !missing.is_empty() {
        sentences.push(format!("This file doesn't have all that the link shows. Not restored: {}.", listed(missing)));
    }
    if is_by_name {
        sentences.push(NAME_ONLY.to_owned());
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Returns a name as far as a notice has room for it: one in a link may be as long as the link.
pub(super) fn shortened(name: &str) -> String {
    const MOST: usize = 80;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// Returns the words as one list, each once.
fn listed(words: &[&'static str]) -> String {
    let mut unique: Vec<&str> = Vec::new();
    for word in words {
        if !unique.contains(word) {
            unique.push(word);
        }
    }
    let more = unique.len().saturating_sub(LISTED);
    unique.truncate(LISTED);
    let list = unique.join(", ");
    if more > 0 { format!("{list} and {more} more") } else { list }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
