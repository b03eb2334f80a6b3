//! Opens a shared trace by range requests: shows its first preview after one of them, downloads the rest, and then
//! answers from the whole trace.
//!
//! Until then a question is answered from the previews as well as they can, and refused if only the whole trace can
//! answer it: a question that is never answered would keep a view from asking its next one. [`Detail::revision`] makes
//! the page ask again. When a part of the trace is asked for whose preview comes later in the file, that preview is
//! requested at once.

mod download;
mod link;

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use js_sys::{Function, Promise};
use protocol::message::{Detail, DetailState, FromWorker};
use query::{Answer, Query};
use session::Session;
use session::preview::Preview;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, spawn_local};

pub use self::link::Link;
use crate::entry::{keep, post, scope};

/// A preview that begins within this many bytes is about to arrive anyway.
const NEAR_BYTES: u64 = 256 << 10;
/// Previews that are requested out of turn at once.
const MOST_REQUESTS: usize = 2;

/// Milliseconds after which the download goes on, whether or not the page has drawn its first picture.
const MOST_WAIT_MS: i32 = 2_000;

/// The answer to questions that only the whole trace can answer.
const LOADING: &str = "This needs the whole trace, which is still loading.";
const STOPPED: &str = "This needs the whole trace, whose download stopped.";

/// A trace whose previews are shown.
struct Shown {
    preview: Preview,
    link: Rc<Link>,
    detail: Detail,
    /// Previews that have been requested out of turn.
    requested: Vec<Range<u64>>,
    /// Lets the download go on: after the first picture, and after it stopped.
    resume: Option<Function>,
}

thread_local! {
    static SHOWN: RefCell<Option<Shown>> = const { RefCell::new(None) };
}

/// Opens a shared trace.
pub async fn open(link: Link) {
    if let Err(message) = download::run(Rc::new(link)).await {
        post(&FromWorker::Failed { message });
    }
}

/// Returns the best answer for now; `None` unless previews are shown.
pub fn answer(device: u32, query: &Query) -> Option<Answer> {
    SHOWN.with_borrow_mut(|shown| {
        let shown = shown.as_mut()?;
        if let Some(range) = shown.preview.wanted(device, query) {
            shown.request(range);
        }
        Some(shown.preview.answer(device, query).unwrap_or_else(|| {
            let is_stopped = matches!(shown.detail.state, DetailState::Stopped(_));
            Answer::Refused(if is_stopped { STOPPED } else { LOADING }.to_owned())
        }))
    })
}

/// Lets the download go on.
pub fn continue_download() {
    let resolve = SHOWN.with_borrow_mut(|shown| shown.as_mut().and_then(|shown| shown.resume.take()));
    if let Some(resolve) = resolve {
        // A promise can be resolved at any time.
        let _ = resolve.call0(&JsValue::NULL);
    }
}

impl Shown {
    fn post(&self) {
        post(&FromWorker::Detail(self.detail.clone()));
    }

    /// Requests a preview out of turn, unless it is about to arrive.
    fn request(&mut self, range: Range<u64>) {
        let is_near = range.start < self.detail.done.saturating_add(NEAR_BYTES);
        let is_idle = self.detail.state == DetailState::Loading && self.requested.len() < MOST_REQUESTS;
        if is_near || !is_idle || self.requested.contains(&range) {
            return;
        }
        self.requested.push(range.clone());
        let link = Rc::clone(&self.link);
        spawn_local(async move {
            // It arrives later in any case.
            let bytes = link.bytes(&range).await.unwrap_or_default();
            with_shown(|shown| {
                shown.requested.retain(|other| *other != range);
                shown.add(&range, &bytes);
            });
        });
    }

    /// Adds a preview that has arrived, and has the page ask again.
    fn add(&mut self, range: &Range<u64>, bytes: &[u8]) {
        if !bytes.is_empty() && self.preview.add(range, bytes) {
            self.detail.revision = self.detail.revision.wrapping_add(1);
            self.post();
        }
    }
}

fn with_shown(act: impl FnOnce(&mut Shown)) {
    SHOWN.with_borrow_mut(|shown| shown.as_mut().map(act));
}

/// Shows a preview, of a trace of which `done` bytes of `total` have arrived.
fn show(preview: Preview, link: Rc<Link>, done: u64, total: u64) {
    post(&FromWorker::Loaded(Box::new(preview.summary().clone())));
    let detail = Detail { done, total, revision: 0, state: DetailState::Loading };
    let shown = Shown { preview, link, detail, requested: Vec::new(), resume: None };
    shown.post();
    SHOWN.set(Some(shown));
}

/// Adds the previews that lie within the first bytes of the trace. Returns whether there are no others.
fn arrived(head: &[u8]) -> bool {
    let mut is_all = true;
    with_shown(|shown| {
        for range in shown.preview.missing().collect::<Vec<_>>() {
            let bytes = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
            if let Some(bytes) = bytes.and_then(|(from, to)| head.get(from..to)) {
                shown.add(&range, bytes);
            }
        }
        is_all = shown.preview.missing().next().is_none();
    });
    is_all
}

/// Waits until the page has drawn the first picture, which would otherwise share the network and the processor with the
/// download; but not for long.
async fn first_picture_drawn() {
    let wait = Promise::new(&mut |resolve, _| {
        let _ = scope().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, MOST_WAIT_MS);
        with_shown(|shown| shown.resume = Some(resolve.clone()));
    });
    // It is only ever resolved.
    let _ = JsFuture::from(wait).await;
}

/// Tells the page how much has arrived.
fn report(done: u64) {
    with_shown(|shown| {
        shown.detail.done = done;
        shown.detail.state = DetailState::Loading;
        shown.post();
    });
}

/// Tells the page that the download stopped, and waits until it is to go on.
async fn stopped(why: String) {
    let wait = Promise::new(&mut |resolve, _| {
        with_shown(|shown| {
            shown.resume = Some(resolve);
            shown.detail.state = DetailState::Stopped(why.clone());
            // Refused questions get another sentence.
            shown.detail.revision = shown.detail.revision.wrapping_add(1);
            shown.post();
        });
    });
    // It is only ever resolved.
    let _ = JsFuture::from(wait).await;
}

/// Answers from the whole trace from now on.
fn complete(session: Session) {
    let summary = keep(session);
    post(&FromWorker::Refolded(summary));
    if let Some(mut shown) = SHOWN.take() {
        shown.detail.done = shown.detail.total;
        shown.detail.revision = shown.detail.revision.wrapping_add(1);
        shown.detail.state = DetailState::Complete;
        shown.post();
    }
}

/// Waits for a few milliseconds; 0 lets other messages come first.
async fn rest(milliseconds: i32) {
    let wait = Promise::new(&mut |resolve, _| {
        // Without timers there is no pause.
        if scope().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, milliseconds).is_err() {
            let _ = resolve.call0(&JsValue::NULL);
        }
    });
    let _ = JsFuture::from(wait).await;
}
