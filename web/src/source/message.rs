//! A trace in a message from the page that opened or frames this one, if the person agrees.
//!
//! The other page sends `{type: "vramscope-ping"}` until it gets `{type: "vramscope-pong"}`, and then
//! `{type: "vramscope-open", name, buffer}` with the file's name and an `ArrayBuffer` of its bytes. The answer is
//! `{type: "vramscope-opened"}` or `{type: "vramscope-refused"}`. Nothing else is ever sent, and nothing to another window.
//! Messages of any other window or form are ignored.

use std::cell::RefCell;

use js_sys::{Array, ArrayBuffer, Object, Reflect};
use trace::limits::{MESSAGE_BYTES, NAME_CHARS, TRUSTED_SITES};
use trace::text::is_hidden;
use wasm_bindgen::prelude::*;
use web_sys::{File, MessageEvent, Window};

use crate::browser::{Listener, window};
use crate::hooks::ModelHandle;
use crate::model::{Action, Dialog, FileKey, Offer, OfferedBy, Place};

/// Where the browser keeps the sites that need not ask again: one origin a line.
const TRUSTED_KEY: &str = "vramscope-trusted-sites";

/// The trace that waits for the person's consent, and the window that sent it.
struct Pending {
    buffer: ArrayBuffer,
    offer: Offer,
    from: Window,
}

thread_local! {
    static PENDING: RefCell<Option<Pending>> = const { RefCell::new(None) };
    /// The file that the last message brought: the next one takes its place, so that no site can fill the memory.
    static SHOWN: RefCell<Option<FileKey>> = const { RefCell::new(None) };
    /// Whether the person refused: the question is not repeated until the page is loaded again.
    static IS_REFUSED: RefCell<bool> = const { RefCell::new(false) };
}

/// What a message asks for.
enum Request {
    Ping,
    Open { name: String, buffer: ArrayBuffer },
}

/// Listens to the page that opened or frames this one, if this page was opened for that.
pub fn listen(model: &ModelHandle) -> Option<Listener> {
    if model.place != Place::Embedded {
        return None;
    }
    let model = model.clone();
    Some(Listener::new(&window(), "message", move |event| {
        let Some(event) = event.dyn_ref::<MessageEvent>() else { return };
        let Some(from) = known_window(event) else { return };
        // A page without an origin of its own (a file, a sandbox) can't be named to the person.
        let origin = event.origin();
        if !origin.starts_with("https://") && !origin.starts_with("http://") {
            return;
        }
        match parse(&event.data()) {
            Some(Request::Ping) => reply(&from, &origin, "vramscope-pong"),
            Some(Request::Open { name, buffer }) => receive(&model, from, origin, name, buffer),
            None => {}
        }
    }))
}

/// Returns the window that sent a message, if it is the one that opened or frames this one.
fn known_window(event: &MessageEvent) -> Option<Window> {
    let source: JsValue = event.source()?.into();
    let own = window();
    let opener = own.opener().ok();
    // The parent of a page without a frame is the page itself.
    let parent = own.parent().ok().flatten().map(JsValue::from).filter(|parent| !Object::is(parent, &own));
    let is_known = [opener, parent].into_iter().flatten().any(|known| Object::is(&known, &source));
    // A window of another site shows nothing of itself, not even its class.
    is_known.then(|| source.unchecked_into())
}

/// Reads a message. Returns `None` unless each of its fields is as expected.
fn parse(data: &JsValue) -> Option<Request> {
    let data = data.dyn_ref::<Object>()?;
    let fields = Object::keys(data).length();
    let field = |name: &str| Reflect::get(data, &name.into()).ok();
    match (field("type")?.as_string()?.as_str(), fields) {
        ("vramscope-ping", 1) => Some(Request::Ping),
        ("vramscope-open", 3) => {
            let name = printable(&field("name")?.as_string()?);
            let buffer: ArrayBuffer = field("buffer")?.dyn_into().ok()?;
            let is_right = !name.is_empty() && (1..=MESSAGE_BYTES).contains(&u64::from(buffer.byte_length()));
            is_right.then_some(Request::Open { name, buffer })
        }
        _ => None,
    }
}

/// Returns a name as one line of limited length, without hidden characters.
pub(super) fn printable(name: &str) -> String {
    name.chars().filter(|c| !is_hidden(*c)).take(NAME_CHARS).collect::<String>().trim().to_owned()
}

/// Sends an answer.
fn reply(to: &Window, origin: &str, kind: &str) {
    let answer = Object::new();
    // Fails only for frozen objects; and a window that was closed in the meantime gets nothing.
    let _ = Reflect::set(&answer, &"type".into(), &kind.into());
    let _ = to.post_message(&answer, origin);
}

fn receive(model: &ModelHandle, from: Window, origin: String, name: String, buffer: ArrayBuffer) {
    let is_busy = PENDING.with_borrow(Option::is_some) || model.now().dialog == Some(Dialog::Offer);
    if is_busy || IS_REFUSED.with_borrow(|is_refused| *is_refused) {
        return reply(&from, &origin, "vramscope-refused");
    }
    let by = OfferedBy::Message { bytes: u64::from(buffer.byte_length()) };
    let offer = Offer { origin, name, by };
    let is_trusted = trusted().contains(&offer.origin);
    PENDING.set(Some(Pending { buffer, offer: offer.clone(), from }));
    if is_trusted {
        accept_message(model, false);
    } else {
        model.dispatch(Action::Offered(offer));
    }
}

/// Opens the trace that waits, and remembers its site if that is wanted.
pub fn accept_message(model: &ModelHandle, is_remembered: bool) {
    let Some(Pending { buffer, offer: Offer { origin, name, .. }, from }) = PENDING.take() else { return };
    if is_remembered {
        trust(&origin);
    }
    let Ok(file) = File::new_with_buffer_source_sequence(&Array::of1(&buffer), &name) else {
        return reply(&from, &origin, "vramscope-refused");
    };
    if let Some(key) = SHOWN.take() {
        super::close(model, key);
    }
    let key = super::open_unkept(model, &file);
    SHOWN.set(Some(key));
    model.dispatch(Action::FileFrom { key, origin: origin.clone(), url: None });
    reply(&from, &origin, "vramscope-opened");
}

/// Drops the trace that waits, if it still does.
pub fn refuse_message() {
    if let Some(Pending { offer, from, .. }) = PENDING.take() {
        IS_REFUSED.set(true);
        reply(&from, &offer.origin, "vramscope-refused");
    }
}

/// Returns the sites that need not ask again.
fn trusted() -> Vec<String> {
    let storage = window().local_storage().ok().flatten();
    let kept = storage.and_then(|storage| storage.get_item(TRUSTED_KEY).ok().flatten()).unwrap_or_default();
    kept.lines().take(TRUSTED_SITES).map(str::to_owned).collect()
}

/// Remembers a site; the oldest is forgotten where there are too many.
fn trust(origin: &str) {
    let mut sites = trusted();
    sites.retain(|site| site != origin);
    sites.insert(0, origin.to_owned());
    sites.truncate(TRUSTED_SITES);
    if let Ok(Some(storage)) = window().local_storage() {
        // Full or blocked: it asks again.
        let _ = storage.set_item(TRUSTED_KEY, &sites.join("\n"));
    }
}
