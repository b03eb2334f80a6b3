//! Recent files: keeps them in the browser for a later visit, lists them on the start page, and opens them again when
//! the page is reloaded. recent.js accesses the browser's storage.

use std::cell::{Cell, RefCell};

use js_sys::{Array, Function, JSON, Object, Promise, Reflect};
use query::link::FileHash;
use trace::few_map::FewMap;
use trace::limits::{RECENT_COPIES_BYTES, RECENT_COPY_BYTES, RECENT_FILES};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{DataTransfer, File};
use yew::prelude::*;

use super::open_one;
use crate::browser::{Listener, use_effect_with, window};
use crate::hooks::{ModelHandle, use_model_of};
use crate::model::{Action, Again, FileEntry, FileKey, Model, Parts, Phase, Place, Recent, Shared, recent_of};

thread_local! {
    /// The module recent.js, if the page has it.
    static RECENT: RefCell<Option<Object>> = const { RefCell::new(None) };
    /// The files that are not kept yet, with promises of their handles.
    static FRESH: RefCell<FewMap<FileKey, (File, JsValue)>> = RefCell::default();
    /// Counts what a person asked for: an answer to anything but the last is not waited for any more.
    static TURN: Cell<u32> = const { Cell::new(0) };
}

/// Sets the module. Called once, before the page is drawn.
pub fn set_recent(module: Option<Object>) {
    RECENT.set(module);
}

/// Calls a function of the module. Returns `None` without the module, or if the function throws.
fn call(name: &str, arguments: &Array) -> Option<JsValue> {
    let module = RECENT.with_borrow(Clone::clone)?;
    let function: Function = Reflect::get(&module, &name.into()).ok()?.dyn_into().ok()?;
    function.apply(&JsValue::NULL, arguments).ok()
}

/// Calls a function of the module, and waits for its promise. Returns `None` for null and undefined, too.
async fn ask(name: &str, arguments: Array) -> Option<JsValue> {
    let promise: Promise = call(name, &arguments)?.dyn_into().ok()?;
    JsFuture::from(promise).await.ok().filter(|found| !found.is_null() && !found.is_undefined())
}

/// Remembers an opened file until it has been read and can be kept. `handle` is a handle, a promise of one, or
/// undefined.
pub(super) fn remember(key: FileKey, file: &File, handle: JsValue) {
    FRESH.with_borrow_mut(|fresh| fresh.insert(key, (file.clone(), handle)));
}

/// Forgets a file that was closed before it could be kept.
pub(super) fn drop_fresh(key: FileKey) {
    FRESH.with_borrow_mut(|fresh| fresh.remove(&key));
}

/// Returns promises of handles for the dropped files; empty if the browser has no handles.
pub(super) fn handles(transfer: &DataTransfer) -> Vec<JsValue> {
    let found = call("handles", &Array::of1(transfer)).and_then(|found| found.dyn_into::<Array>().ok());
    found.map(|found| found.to_vec()).unwrap_or_default()
}

/// Opens the browser's dialog that returns handles. Returns `None` if the browser has no such dialog.
pub(super) fn pick(model: &ModelHandle) -> Option<()> {
    let promise: Promise = call("pick", &Array::new())?.dyn_into().ok()?;
    let model = model.clone();
    spawn_local(async move {
        let Ok(found) = JsFuture::from(promise).await else { return };
        for pair in Array::from(&found).to_vec().chunks(2) {
            if let [file, handle] = pair
                && let Some(file) = file.dyn_ref::<File>()
            {
                open_one(&model, file, handle.clone());
            }
        }
    });
    Some(())
}

/// Reads an entry of the browser's list; `None` without an id or a name.
fn read(entry: &JsValue) -> Option<Recent> {
    let get = |name: &str| Reflect::get(entry, &name.into()).unwrap_or_default();
    let number = |name: &str| get(name).as_f64().unwrap_or_default();
    Some(Recent {
        id: get("id").as_string()?,
        name: get("name").as_string()?,
        bytes: number("size") as u64,
        opened_us: (number("when") * 1e3) as i64,
        peak: number("peak") as u64,
        has_oom: get("oom").as_bool() == Some(true),
        hash: get("hash").as_string().and_then(|text| FileHash::parse(&text)),
        is_copy: get("copy").is_string() && get("handle").is_undefined(),
    })
}

/// Reads the list again and returns it; `None` if the browser has no storage for it.
async fn refresh(model: &ModelHandle) -> Option<Vec<Recent>> {
    let found = ask("list", Array::new()).await;
    let list = found.map(|found| Array::from(&found).iter().filter_map(|entry| read(&entry)).collect::<Vec<_>>());
    model.dispatch(Action::RecentListed(list.clone().map(Shared::new)));
    list
}

/// Opens the file of the address's link again, if it is a recent file that needs no permission.
pub fn reopen_linked(model: &ModelHandle) {
    let model = model.clone();
    spawn_local(async move {
        model.dispatch(Action::Reopening(true));
        reopen(&model).await;
        model.dispatch(Action::Reopening(false));
    });
}

async fn reopen(model: &ModelHandle) {
    let Some(list) = refresh(model).await else { return };
    let now = model.now();
    // Another file is being opened, or the server is delivering the same one.
    if now.files.iter().any(|file| matches!(file.phase, Phase::Loading { .. })) {
        return;
    }
    let Some(found) = now.link.as_ref().and_then(|link| recent_of(link, &list)) else { return };
    if let Opened::File(file) = opened(&found.id, false).await {
        arrived(model, &found.id, &file, true).await;
    }
}

/// Opens the recent file with an identity, if there is one that needs no permission.
pub(super) fn open_with(model: &ModelHandle, hash: FileHash) {
    let model = model.clone();
    spawn_local(async move {
        let Some(list) = refresh(&model).await else { return };
        let Some(found) = list.iter().find(|file| file.hash == Some(hash)) else { return };
        if let Opened::File(file) = opened(&found.id, false).await {
            arrived(&model, &found.id, &file, false).await;
        }
    });
}

/// What the browser answers when a file is asked for.
enum Opened {
    /// The file.
    File(File),
    /// A person must allow it first, or has refused.
    Refused,
    /// It was moved, renamed or deleted.
    Gone,
}

/// Asks the browser for a file; with `asks`, it may ask a person for their permission.
async fn opened(id: &str, asks: bool) -> Opened {
    match ask("open", Array::of2(&id.into(), &asks.into())).await.map(JsCast::dyn_into::<File>) {
        Some(Ok(file)) => Opened::File(file),
        Some(Err(_)) => Opened::Refused,
        None => Opened::Gone,
    }
}

/// Opens a file that was opened lately. Says so while the browser asks a person for its permission.
pub fn open_recent(model: &ModelHandle, id: &str) {
    let (model, id) = (model.clone(), id.to_owned());
    spawn_local(async move {
        let turn = TURN.get().wrapping_add(1);
        TURN.set(turn);
        let now = model.now();
        let known = now.recent.as_ref().and_then(|recent| recent.iter().find(|file| file.id == id));
        let name = known.map_or_else(|| "the file".to_owned(), |file| format!("“{}”", file.name));
        let mut found = opened(&id, false).await;
        if matches!(found, Opened::Refused) {
            model.dispatch(Action::Waits(Some(format!("Waiting for the browser's permission to read {name}"))));
            found = opened(&id, true).await;
            // It was cancelled, or another file was asked for.
            if TURN.get() != turn {
                return;
            }
            model.dispatch(Action::Waits(None));
        }
        match found {
            Opened::File(file) => arrived(&model, &id, &file, false).await,
            Opened::Refused => model.dispatch(Action::Notify(format!(
                "The browser was not allowed to read {name}. Open it again and allow it, or drop the file on this page. If the \
                 browser does not ask again, allow files for this page in its site settings."
            ))),
            Opened::Gone => {
                model.dispatch(Action::Notify(GONE.to_owned()));
                forget(&model, Some(&id));
            }
        }
    });
}

/// Forgets what the browser asks a person for: whatever they answer, nothing is opened.
pub fn stop_waiting(model: &ModelHandle) {
    TURN.set(TURN.get().wrapping_add(1));
    model.dispatch(Action::Waits(None));
}

/// Opens a file that the browser handed out again, and keeps its handle. `is_linked` says that the page's link is for it.
async fn arrived(model: &ModelHandle, id: &str, file: &File, is_linked: bool) {
    let handle = ask("handleOf", Array::of1(&id.into())).await.unwrap_or_default();
    if is_linked {
        // Something else may have been opened meanwhile.
        if model.now().link.is_none() {
            return;
        }
        model.dispatch(Action::StepJoined);
    }
    open_one(model, file, handle);
}

/// Shown when a file was moved, renamed or deleted.
const GONE: &str = "The file was moved or deleted. Open it from its new location.";

/// Forgets a file; without an id, all of them.
pub fn forget(model: &ModelHandle, id: Option<&str>) {
    let arguments = id.map_or_else(Array::new, |id| Array::of1(&id.into()));
    let model = model.clone();
    spawn_local(async move {
        ask("forget", arguments).await;
        refresh(&model).await;
    });
}

/// Keeps a file that has been read.
fn keep(model: &ModelHandle, key: FileKey) {
    let Some((file, handle)) = FRESH.with_borrow_mut(|fresh| fresh.remove(&key)) else { return };
    let limits = [RECENT_COPY_BYTES as f64, RECENT_COPIES_BYTES as f64, RECENT_FILES as f64];
    let mut arguments = Array::of2(&file, &handle);
    arguments.extend(limits.map(JsValue::from_f64));
    let model = model.clone();
    spawn_local(async move {
        if let Some(id) = ask("keep", arguments).await.and_then(|id| id.as_string()) {
            model.dispatch(Action::FileKept { key, again: Again::Kept(id) });
            refresh(&model).await;
        }
    });
}

/// What the list shows about a kept file: its id, peak of reserved bytes, whether memory ran out, and identity.
type Facts = (String, u64, bool, Option<FileHash>);

fn facts(file: &FileEntry) -> Option<Facts> {
    let Again::Kept(id) = &file.again else { return None };
    let devices = file.summary().map(|summary| summary.devices.as_slice()).unwrap_or_default();
    let peak = devices.iter().map(|device| device.peak_reserved).max().unwrap_or_default();
    Some((id.clone(), peak, devices.iter().any(|device| !device.ooms.is_empty()), file.hash))
}

fn note((id, peak, has_oom, hash): &Facts) {
    let facts = Object::new();
    let mut fields = vec![("peak", JsValue::from_f64(*peak as f64)), ("oom", (*has_oom).into())];
    fields.extend(hash.map(|hash| ("hash", hash.to_string().into())));
    for (name, value) in fields {
        // An object that was just made accepts every field.
        let _ = Reflect::set(&facts, &name.into(), &value);
    }
    let facts = JSON::stringify(&facts).map(JsValue::from).unwrap_or_default();
    let arguments = Array::of2(&id.as_str().into(), &facts);
    spawn_local(async move { drop(ask("note", arguments).await) });
}

/// Returns whether a file is lost when the page is closed.
fn is_lost(file: &FileEntry) -> bool {
    let is_open = !matches!(file.phase, Phase::Failed { .. });
    let is_elsewhere = file.live.is_some() || file.shared.is_some() || file.url.is_some();
    is_open && !is_elsewhere && file.again == Again::No
}

/// Keeps opened files for a later visit, updates their entries in the list, and asks before files are lost.
#[hook]
pub fn use_recent() {
    let model = use_model_of(Parts::REST);
    let current = model.current;
    // The current file is copied only after its first picture.
    let is_read = |file: &&FileEntry| {
        let is_read = match file.phase {
            Phase::Ready { is_pictured, .. } => is_pictured || current != Some(file.key),
            Phase::Sweep(_) => true,
            _ => false,
        };
        is_read && file.again != Again::Here
    };
    let read: Vec<FileKey> = model.files.iter().filter(is_read).map(|file| file.key).collect();
    let noted: Vec<Facts> = model.files.iter().filter(|file| is_read(file)).filter_map(facts).collect();
    let has_lost = model.files.iter().any(is_lost);
    {
        let model = model.clone();
        use_effect_with(read, move |read| read.iter().for_each(|key| keep(&model, *key)));
    }
    let known = use_mut_ref(Vec::<Facts>::new);
    use_effect_with(noted, move |noted| {
        let mut known = known.borrow_mut();
        noted.iter().filter(|facts| !known.contains(facts)).for_each(note);
        known.clone_from(noted);
    });
    use_effect_with(has_lost, |has_lost| {
        // Only while it is needed: browsers don't keep a page with this listener in their cache for Back and Forward.
        let listener = has_lost.then(|| {
            Listener::new(&window(), "beforeunload", |event| {
                event.prevent_default();
                // Older browsers ask only if this is set.
                let _ = Reflect::set(event.as_ref(), &"returnValue".into(), &JsValue::TRUE);
            })
        });
        move || drop(listener)
    });
}

/// Lists the recent files and opens the one that the page's address names, unless the page isn't from a server.
pub fn begin_recent(model: &ModelHandle) {
    let now: &Model = model;
    if now.place != Place::Server {
        RECENT.set(None);
    }
    if RECENT.with_borrow(Option::is_some) {
        reopen_linked(model);
    }
}
