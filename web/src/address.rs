//! The address bar and the browser's history. The address is read when the page opens, and written shortly after the
//! view changes. Each step of the model's history has an entry in the browser's history, which keeps the step's number.
//! Within a step, the address changes in place.
//!
//! ```text
//! an action of a person ─► the model adds a step ─► pushState ─► the browser's entry, with the step's number
//! Back, Forward, undo ─► the browser ─► popstate with the number ─► the model goes to the step
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use query::link::{Link, Parsed};
use wasm_bindgen::prelude::*;
use web_sys::Url;
use yew::prelude::*;

use crate::browser::{Listener, Timeout, use_effect_with, window};
use crate::hooks::{ModelHandle, use_model};
use crate::model::{Action, FileEntry, History, Model, Phase, SHARED_PREFIX, Way, steps_to_undo, way};
use crate::source;

/// Milliseconds without a change before the address is written. Browsers limit how often a page may do this.
const REST_MS: i32 = 250;

/// Returns what the address bar says, as the first action.
pub fn read() -> Option<Action> {
    match Link::parse(&window().location().hash().unwrap_or_default()) {
        Parsed::Nothing => None,
        Parsed::Link(link) => Some(Action::LinkRead(link)),
    }
}

/// Returns whether the address has a fragment or parameters, which may name what to open.
pub fn names_something() -> bool {
    let location = window().location();
    [location.hash(), location.search()].into_iter().any(|part| part.is_ok_and(|part| !part.is_empty()))
}

/// Returns the step number of the browser's current entry; `None` if the page did not make that entry.
fn number_there() -> Option<u32> {
    let number = window().history().ok()?.state().ok()?.as_f64()?;
    // Casts of floating point saturate.
    Some(number as u32)
}

/// Returns the history that the page begins with. After a reload, step numbers continue from the current entry's.
pub fn history() -> History {
    History::starting(number_there().unwrap_or_default())
}

/// Goes back or forward through the browser's history, to the nearest step that shows something else.
pub fn step(model: &ModelHandle, is_forward: bool) {
    go(steps_to_undo(&model.now(), is_forward));
}

fn go(steps: i32) {
    if steps != 0
        && let Ok(history) = window().history()
    {
        // Fails only if the window shows another page by now.
        let _ = history.go_with_delta(steps);
    }
}

/// Returns the page's path as its folder and its last segment, which is empty at the page's root.
fn path_there() -> (String, String) {
    let path = window().location().pathname().unwrap_or_default();
    match path.rsplit_once('/') {
        Some((folder, last)) => (format!("{folder}/"), last.to_owned()),
        None => (String::new(), path),
    }
}

/// Returns the fragment for what is shown; `None` while the link that the page was opened with is still pending.
fn fragment(model: &Model) -> Option<String> {
    let Some(file) = model.file() else {
        // A reload asks again about what is being offered.
        if model.offer.is_some() {
            return None;
        }
        // The fragment of a file that was shown before must go, also of one that was closed. One that waits for its file stays.
        let was_shown = model.history.changes > 0 && model.link.is_none();
        return (was_shown || !model.files.is_empty()).then(String::new);
    };
    let part = source::part(file).unwrap_or_default();
    if let Some(live) = &file.live {
        let link = model.session_link(live)?;
        return model.link.is_none().then(|| format!("#{link}{part}"));
    }
    if let Phase::Sweep(_) = file.phase {
        return model.link.is_none().then(String::new);
    }
    let mut link = model.view_link()?;
    if file.path().is_none() {
        link.file = Some(file.name.clone());
        link.hash = file.hash;
    }
    Some(format!("#{link}{part}"))
}

/// Returns the address of what is shown; `None` if it is not known yet.
fn address(model: &Model) -> Option<String> {
    let fragment = fragment(model)?;
    let (folder, last) = path_there();
    let path = match model.file().and_then(FileEntry::path) {
        Some(path) => path,
        // The page's path identifies a shared trace, which is no longer the one that is shown.
        None if last.starts_with(SHARED_PREFIX) => String::new(),
        None => last,
    };
    Some(format!("{folder}{path}{}{fragment}", source::parameters_for(model.file())))
}

/// Returns the URL of what is shown, even if the address bar has not been updated yet.
pub fn url(model: &Model) -> String {
    let location = window().location();
    let there = location.href().unwrap_or_default();
    match address(model) {
        Some(address) => Url::new_with_base(&address, &there).map_or(there, |url| url.href()),
        None => there,
    }
}

/// What the page knows about the browser's history.
struct Bar {
    /// The step number of its current entry.
    there: u32,
    /// The address to write to that entry, if it is not written yet.
    due: Option<String>,
    timer: Option<Timeout>,
}

impl Bar {
    /// Writes an entry with an address; without one, the address stays. If the browser refuses the address (as for a
    /// page opened from disk), the entry is written without it. If that fails too (too many calls), only the step is
    /// lost.
    fn write(&mut self, number: u32, address: Option<&str>, is_new: bool) {
        let Ok(history) = window().history() else { return };
        let state = JsValue::from_f64(f64::from(number));
        let put = |address| match is_new {
            true => history.push_state_with_url(&state, "", address),
            false => history.replace_state_with_url(&state, "", address),
        };
        let _ = put(address).or_else(|_| put(None));
        self.there = number;
    }

    /// Writes the address of the current entry, if one is waiting to be written.
    fn settle(&mut self) {
        if let Some(address) = self.due.take() {
            self.write(self.there, Some(&address), false);
        }
    }
}

/// Keeps the address bar and the browser's history up to date.
#[hook]
pub fn use_address_bar() {
    let model = use_model();
    let bar = use_mut_ref(|| Bar { there: model.history.number(), due: None, timer: None });
    {
        let (model, bar) = (model.clone(), Rc::clone(&bar));
        use_effect_with((), move |()| {
            let there = bar.borrow().there;
            bar.borrow_mut().write(there, None, false);
            // A step through the browser's history, or an address that was typed or pasted over this one.
            let listener = Listener::new(&window(), "popstate", move |_| went(&model, &bar));
            move || drop(listener)
        });
    }
    // A followed session changes all the time, but its address does not.
    use_effect_with((model.history.number(), address(&model)), move |(number, address)| {
        let now = model.now();
        if now.history.number() != *number {
            // The model has moved on since this render. The next render writes the address.
            return;
        }
        let mut this = bar.borrow_mut();
        let new: Vec<u32> = now.history.since(this.there).collect();
        if new.is_empty() {
            this.due.clone_from(address);
            let bar = Rc::clone(&bar);
            // The new timer replaces, and so cancels, the previous one.
            this.timer = Some(Timeout::new(REST_MS, move || bar.borrow_mut().settle()));
            return;
        }
        this.settle();
        for number in new {
            this.write(number, address.as_deref(), true);
        }
    });
}

/// Follows the browser to another of its entries.
fn went(model: &ModelHandle, bar: &RefCell<Bar>) {
    source::take_token(model.place);
    let number = number_there();
    {
        let mut bar = bar.borrow_mut();
        // The waiting address belongs to the entry that was left.
        bar.due = None;
        if let Some(number) = number {
            bar.there = number;
        }
    }
    match number.map(|number| (number, way(&model.now(), number))) {
        Some((number, Way::There)) => model.dispatch(Action::StepTo(number)),
        Some((number, Way::Further(steps))) => {
            model.dispatch(Action::StepStay(number));
            go(steps);
        }
        Some((_, Way::Unknown)) | None => {
            model.dispatch(Action::StepAdopted(number));
            let here = model.now().history.number();
            bar.borrow_mut().write(here, None, false);
            open_there(model);
        }
    }
}

/// Shows what the address names.
fn open_there(model: &ModelHandle) {
    let (_, path) = path_there();
    if let Some(file) = model.now().files.iter().find(|file| file.path().as_ref() == Some(&path)) {
        model.dispatch(Action::SelectFile(file.key));
    }
    match read() {
        Some(action) => {
            let session = match &action {
                Action::LinkRead(link) => link.link.session.clone(),
                _ => None,
            };
            model.dispatch(action);
            if model.now().link.is_some() {
                source::reopen_linked(model);
            }
            if let Some(session) = session {
                source::watch(model, &session);
            }
        }
        None if path.is_empty() => model.dispatch(Action::ShowStart),
        None => {}
    }
}
