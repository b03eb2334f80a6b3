//! The copy that the dialog describes, kept in step with the choices.

use std::rc::Rc;

use shared::redaction::{Contents, Redaction};
use shared::session::Moved;
use web_sys::Blob;
use yew::prelude::*;

use super::origin::Origin;
use crate::hooks::ModelHandle;
use crate::worker::client::Copied;

/// A copy, as far as it is known.
#[derive(Clone, Default, PartialEq)]
pub struct Copy {
    /// What the trace says, and what the copy says. Those of the last choices, until the new ones are known.
    pub contents: Option<Rc<(Contents, Contents)>>,
    /// Where the view is in the copy.
    pub moved: Option<Moved>,
    /// The copy, once it is packed.
    pub packed: Option<Blob>,
    /// Bytes and events of the last copy that was packed.
    last: Option<(u64, u64)>,
}

impl Copy {
    /// Returns the size, and whether it is exact. `None` while nothing is known.
    pub fn size(&self) -> Option<(u64, bool)> {
        if let Some(packed) = &self.packed {
            return Some((packed.size() as u64, true));
        }
        let (bytes, events) = self.last.filter(|(_, events)| *events > 0)?;
        let after = &self.contents.as_ref()?.1;
        Some(((bytes as f64 / events as f64 * after.events as f64) as u64, false))
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
            let Some(Wanted { origin, name, redaction }) = wanted.clone() else { return };
            copy.borrow_mut().packed = None;
            let reply = {
                let (copy, redraw) = (Rc::clone(&copy), redraw.clone());
                Callback::from(move |copied| {
                    let mut copy = copy.borrow_mut();
                    match copied {
                        Copied::Contents { before, after, moved } => {
                            copy.contents = Some(Rc::new((*before, *after)));
                            copy.moved = moved;
                        }
                        Copied::Packed(blob) => {
                            let events = copy.contents.as_ref().map_or(0, |contents| contents.1.events);
                            copy.last = Some((blob.size() as u64, events));
                            copy.packed = Some(blob);
                        }
                    }
                    redraw.force_update();
                })
            };
            model.workers().copy(origin.key, name, redaction, origin.named, reply);
            redraw.force_update();
        });
    }
    copy.borrow().clone()
}
