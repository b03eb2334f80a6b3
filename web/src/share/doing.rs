//! What happens to a copy that is ready: it is shared, or saved.

use std::cell::RefCell;
use std::rc::Rc;

use query::copy::Moved;
use query::link::Link;
use wasm_bindgen_futures::spawn_local;
use web_sys::Blob;
use yew::prelude::*;

use super::draft;
use super::moved_view::{link_to, lost};
use super::origin::{Origin, Shown};
use super::save::{is_template, save_file, save_page};
use super::sender::{Progress, Sender};
use crate::hooks::ModelHandle;
use crate::model::Action;
use crate::source::shares::{self, Terms};
use crate::source::uploads::{self, Upload};

/// What waits for the copy to be packed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It is sent to the server.
    Share,
    /// It is saved as a recording.
    SaveFile,
    /// It is saved inside a page.
    SavePage,
}

/// A link that was made.
#[derive(Clone, Default, PartialEq)]
pub struct Made {
    /// Its address, with the view.
    pub address: String,
    /// What the view shows and the copy doesn't have; empty if it has everything.
    pub lost: String,
}

/// The upload that runs, if one does.
pub type Sending = Rc<RefCell<Option<Rc<Sender>>>>;

/// Everything that sharing and saving need.
pub struct Doing {
    /// The page's model.
    pub model: ModelHandle,
    /// The trace.
    pub origin: Rc<Origin>,
    /// Where the view is in the copy.
    pub moved: Option<Moved>,
    /// The copy's name.
    pub name: String,
    /// The terms of the link.
    pub terms: Option<Terms>,
    /// Whether only the shown part is kept.
    pub is_part: bool,
    /// Why it could not be done.
    pub failure: UseStateSetter<String>,
    /// What was done.
    pub said: UseStateSetter<String>,
    /// How far the upload is.
    pub progress: UseStateSetter<Option<Progress>>,
    /// The link.
    pub made: UseStateSetter<Made>,
}

impl Doing {
    /// Begins.
    pub fn begin(self, act: Act, packed: &Blob, sending: &Sending) {
        self.failure.set(String::new());
        self.said.set(String::new());
        match act {
            Act::SaveFile => told(save_file(packed, &self.name), &self.said, &self.failure),
            Act::SavePage => {
                let (packed, view) = (packed.clone(), self.view().to_string());
                spawn_local(async move {
                    let saved = match shares::offline_page().await.filter(|page| is_template(page)) {
                        Some(template) => save_page(&template, &packed, &self.name, &view).await,
                        None => Err("The server did not send the page. Save the trace as a file instead.".to_owned()),
                    };
                    told(saved, &self.said, &self.failure);
                });
            }
            Act::Share => self.share(packed, sending),
        }
    }

    /// Returns the part of the trace that is kept, unless it is the whole.
    fn part(&self) -> Option<&Shown> {
        self.origin.shown.as_ref().filter(|_| self.is_part)
    }

    /// Returns the view of the copy.
    fn view(&self) -> Link {
        let Origin { view, start, .. } = &*self.origin;
        link_to(view, self.origin.shown_device(), *start, self.moved, self.part())
    }

    fn share(self, packed: &Blob, sending: &Sending) {
        let view = self.view().to_string();
        let lost = |part| lost(&self.origin.view, self.origin.shown_device(), self.origin.start, self.moved, part);
        let lost = self.part().map(lost).unwrap_or_default();
        let Some(terms) = self.terms else { return };
        let (model, progress, made) = (self.model, self.progress, self.made);
        let report = Callback::from(move |now: Progress| {
            if let Progress::Done { shared, delete_token } = &now {
                uploads::remember(Upload::of(shared, delete_token.clone(), view.clone()));
                model.dispatch(Action::SetHasUploads(!uploads::all().is_empty()));
                draft::forget();
                made.set(Made { address: shares::address(&shared.token, &view), lost: lost.clone() });
            }
            progress.set(Some(now));
        });
        let new = Sender::new(packed.clone(), Terms { name: self.name, ..terms }, report);
        *sending.borrow_mut() = Some(Rc::clone(&new));
        new.start();
    }
}

/// Tells whether a copy was saved.
fn told(saved: Result<String, String>, said: &UseStateSetter<String>, failure: &UseStateSetter<String>) {
    match saved {
        Ok(sentence) => said.set(sentence),
        Err(sentence) => failure.set(sentence),
    }
}
