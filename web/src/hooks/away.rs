//! Puts away files that were not shown lately, and reads them again once they are shown.

use yew::prelude::*;

use super::use_model_of;
use crate::browser::use_effect_with;
use crate::model::{Action, Parts, to_bring_back, to_put_away};

/// Ends the workers of files that are put away, and starts a new worker for such a file when it is shown again.
#[hook]
pub fn use_putting_away() {
    let model = use_model_of(Parts::REST);
    {
        let model = model.clone();
        use_effect_with(to_put_away(&model), move |keys| {
            for key in keys.iter().filter(|key| model.workers().put_away(**key)) {
                model.dispatch(Action::PutAway(*key));
                if model.now().entry(*key).is_some_and(|file| file.whatif.is_none()) {
                    model.workers().desks().close(*key);
                }
            }
        });
    }
    let shown: Vec<_> = to_bring_back(&model).into_iter().map(|file| (file.key, file.hash.is_none())).collect();
    use_effect_with(shown, move |shown| {
        for (key, is_unidentified) in shown.iter().copied() {
            model.dispatch(Action::Returned(key));
            if let Err(message) = model.workers().bring_back(key, is_unidentified) {
                model.dispatch(Action::FileFailed { key, message });
            }
        }
    });
}
