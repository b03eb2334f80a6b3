//! Asks for the identities of open files, which links carry.

use std::collections::HashSet;

use yew::prelude::*;

use super::use_model_of;
use crate::browser::use_effect_with;
use crate::model::{FileEntry, FileKey, Model, Parts, Phase};

/// Returns whether a file's identity is wanted now: after its first picture, or at once if a link waits for it or names
/// it as what another is compared with.
fn is_wanted(model: &Model, file: &FileEntry) -> bool {
    let Phase::Ready { is_pictured, .. } = file.phase else { return false };
    let is_awaited = model.link.as_ref().is_some_and(|link| link.hash.is_some())
        || model.shown_base().is_some_and(|(key, _)| key == file.key);
    file.hash.is_none() && file.live.is_none() && file.shared.is_none() && (is_pictured || is_awaited)
}

/// Asks for the identity of each file once.
#[hook]
pub fn use_identities() {
    let model = use_model_of(Parts::REST);
    let asked = use_mut_ref(HashSet::<FileKey>::new);
    let wanted: Vec<_> = model.files.iter().filter(|file| is_wanted(&model, file)).map(|file| file.key).collect();
    use_effect_with(wanted, move |wanted| {
        for key in wanted {
            if asked.borrow_mut().insert(*key) {
                model.workers().identify(*key);
            }
        }
    });
}
