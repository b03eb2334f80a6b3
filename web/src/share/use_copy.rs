//! The copy that the dialog describes, kept in step with the choices.

use std::rc::Rc;

use query::copy::Moved;
use query::redaction::{Comparison, Redaction};
use web_sys::Blob;
use yew::prelude::*;

use super::origin::Origin;
use crate::browser::use_effect_with;
use crate::hooks::ModelHandle;
use crate::worker::client::Copied;
use crate::worker::message::ToWorker;

/// A copy, as far as it is known.
#[derive(Clone, Default, PartialEq)]
pub struct Copy {
    /// The trace beside its copy. That of the last choices, until the new ones are known.
    pub contents: Option<Rc<Comparison>>,
    /// Where the view is in the copy.
    pub moved: Option<Moved>,
    /// The copy, once it is packed.
    pub packed: Option<Blob>,
    /// What it was requested from.
    of: Option<Wanted>,
}

impl Copy {
    /// Returns the packed copy if it is what is wanted now. A render may know of new choices before the copy does.
    pub fn packed_of(&self, wanted: Option<&Wanted>) -> Option<&Blob> {
        self.packed.as_ref().filter(|_| wanted.is_some() && self.of.as_ref() == wanted)
    }
}

/// What a copy is made of.
#[derive(Clone, PartialEq)]
pub struct Wanted {
    /// The trace.
    pub origin: Rc<Origin>,
    /// The copy's name.
    pub name: String,
    /// What is left out.
    pub redaction: Redaction,
}

/// Returns the copy. It is made again when the choices change.
#[hook]
pub fn use_copy(model: &ModelHandle, wanted: Option<Wanted>) -> Copy {
    let copy = use_mut_ref(Copy::default);
    let redraw = use_force_update();
    {
        let (model, copy) = (model.clone(), Rc::clone(&copy));
        use_effect_with(wanted, move |wanted| {
            {
                let mut copy = copy.borrow_mut();
                (copy.packed, copy.of) = (None, wanted.clone());
            }
            let Some(Wanted { origin, name, redaction }) = wanted.clone() else { return };
            let reply = {
                let (copy, redraw) = (Rc::clone(&copy), redraw.clone());
                Callback::from(move |copied| {
                    let mut copy = copy.borrow_mut();
                    match copied {
                        Copied::Contents { contents, moved } => {
                            copy.contents = Some(Rc::from(contents));
                            copy.moved = moved;
                        }
                        Copied::Packed(blob) => copy.packed = Some(blob),
                    }
                    redraw.force_update();
                })
            };
            let (named, is_running) = (origin.named, origin.is_running);
            let message = move |id| ToWorker::Copy { id, name, redaction, named, is_running };
            model.workers().copy(origin.key, message, reply);
            redraw.force_update();
        });
    }
    copy.borrow().clone()
}
