//! The page's end of the protocol: starts workers, hands them files, sends questions and delivers answers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Array, ArrayBuffer, Function, Uint8Array};
use protocol::failure;
use protocol::message::{FromWorker, ToWorker, WARM_UP, decode, encode};
use query::copy::Moved;
use query::own_rules::OwnRules;
use query::redaction::Comparison;
use query::{Answer, Query};
use trace::few_map::FewMap;
use wasm_bindgen::prelude::*;
use web_sys::{Blob, ErrorEvent, Event, File, MessageEvent, Worker};
use yew::Callback;

use super::answers::Answers;
use super::rerun::Desks;
use crate::browser::root;
use crate::model::FileKey;

thread_local! {
    /// Starts a worker and hands it the compiled engine. Comes from boot.js, which downloads and compiles the engine
    /// while the page itself is still being loaded.
    static START: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Sets the function that starts workers. Called once, before the page is drawn.
pub fn set_starter(start: Function) {
    START.set(Some(start));
}

/// All workers of the page. Clones share them.
#[derive(Clone, Default)]
pub struct Workers(Rc<Inner>);

#[derive(Default)]
struct Inner {
    next_file: Cell<u32>,
    next_question: Cell<u32>,
    has_answered: Cell<bool>,
    open: RefCell<FewMap<FileKey, Connection>>,
    /// What each worker began with, to start it again after its file was put away.
    firsts: RefCell<FewMap<FileKey, First>>,
    spare: RefCell<Option<Spare>>,
    /// The user's own rules.
    rules: RefCell<OwnRules>,
    desks: Desks,
}

/// A worker that was started before there is a file for it, so that the first file doesn't wait.
struct Spare {
    worker: Worker,
    has_failed: Rc<Cell<bool>>,
    _on_error: Closure<dyn FnMut(ErrorEvent)>,
}

/// What a worker begins with, and where its messages go.
#[derive(Clone)]
struct First {
    bytes: FirstMessage,
    report: Callback<FromWorker>,
}

/// The first message to a worker.
#[derive(Clone)]
enum FirstMessage {
    File(File),
    Message(ToWorker),
}

/// A worker, its listeners, and the questions that it has not answered yet.
struct Connection {
    worker: Worker,
    pending: FewMap<u32, Pending>,
    /// The copy that was requested last, and who waits for it.
    copying: Option<(u32, Callback<Copied>)>,
    /// The requests that were asked for last, and who waits for them.
    reading: Option<(u32, Callback<ArrayBuffer>)>,
    answers: Answers,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_error: Closure<dyn FnMut(Event)>,
}

/// A copy of a trace for somebody else, as it becomes known.
#[derive(Clone)]
pub enum Copied {
    /// What it says.
    Contents {
        /// The trace beside its copy.
        contents: Box<Comparison>,
        /// Where the view is in the copy.
        moved: Option<Moved>,
    },
    /// The copy itself, as a recording.
    Packed(Blob),
}

/// A question in flight.
struct Pending {
    device: u32,
    query: Query,
    /// The version of the data when it was sent.
    version: u32,
    replies: Vec<Callback<Rc<Answer>>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}

impl PartialEq for Workers {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Workers {
    /// Returns a key that no other file of this page has.
    pub fn next_key(&self) -> FileKey {
        let key = self.0.next_file.get();
        self.0.next_file.set(key + 1);
        FileKey(key)
    }

    /// Starts a worker for the first file. It may practise on another file until there is one.
    pub fn warm_up(&self, practises: bool) {
        let Ok(worker) = start() else { return };
        let has_failed = Rc::new(Cell::new(false));
        let on_error = {
            let has_failed = Rc::clone(&has_failed);
            Closure::new(move |_| has_failed.set(true))
        };
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        if practises {
            // Fails only with the worker, which is not used then.
            let _ = worker.post_message(&JsValue::from_str(WARM_UP));
        }
        *self.0.spare.borrow_mut() = Some(Spare { worker, has_failed, _on_error: on_error });
    }

    /// Starts a worker on a file. Messages other than answers go to `report`. With `identify`, the file's identity is
    /// found while it is read, and reported before its summary.
    pub fn open(&self, key: FileKey, file: &File, identify: bool, report: Callback<FromWorker>) -> Result<(), String> {
        self.begin(key, First { bytes: FirstMessage::File(file.clone()), report }, identify)
    }

    /// Keeps a file, for [`Self::bring_back`] to start a worker on. Messages other than answers go to `report`.
    pub fn keep(&self, key: FileKey, file: &File, report: Callback<FromWorker>) {
        let first = First { bytes: FirstMessage::File(file.clone()), report };
        self.0.firsts.borrow_mut().insert(key, first);
    }

    /// Starts a worker with a first message. Messages other than answers go to `report`.
    pub fn open_by(&self, key: FileKey, message: &ToWorker, report: Callback<FromWorker>) -> Result<(), String> {
        self.begin(key, First { bytes: FirstMessage::Message(message.clone()), report }, false)
    }

    /// Ends a file's worker to free its memory, and keeps what is needed to start it again. Its open questions are
    /// never answered. Returns `false` and does nothing for a session, which would miss events.
    pub fn put_away(&self, key: FileKey) -> bool {
        let is_session = |first: &First| matches!(first.bytes, FirstMessage::Message(ToWorker::Watch { .. }));
        if self.0.firsts.borrow().get(&key).is_none_or(is_session) {
            return false;
        }
        let connection = self.0.open.borrow_mut().remove(&key);
        self.count_pending();
        connection.is_some()
    }

    /// Starts a worker on a file that waits, or that was put away. With `identify`, the file's identity is found while it is
    /// read, and reported before its summary.
    pub fn bring_back(&self, key: FileKey, identify: bool) -> Result<(), String> {
        let first = self.0.firsts.borrow().get(&key).cloned();
        self.begin(key, first.ok_or(failure::NO_WORKER)?, identify)
    }

    fn begin(&self, key: FileKey, first: First, identify: bool) -> Result<(), String> {
        let report = first.report.clone();
        let spare = self.0.spare.take().filter(|spare| !spare.has_failed.get());
        let worker = spare.map_or_else(start, |spare| Ok(spare.worker)).map_err(|_| failure::NO_WORKER.to_owned())?;

        let workers = self.clone();
        let on_message = {
            let report = report.clone();
            Closure::new(move |event: MessageEvent| workers.receive(key, &event.data(), &report))
        };
        let on_error = Closure::new(move |event: Event| {
            event.prevent_default();
            // A worker whose script could not be loaded reports an event without a message.
            let message = event.dyn_ref::<ErrorEvent>().map(ErrorEvent::message).unwrap_or_default();
            report.emit(FromWorker::Failed { message: failure::sentence(&message) });
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        let rules = self.0.rules.borrow();
        if !rules.is_empty() {
            // Fails only with the worker, which then fails on the file too.
            let _ = send(&worker, &ToWorker::SetRules(rules.clone()));
        }
        mark("file sent");
        let given = match &first.bytes {
            FirstMessage::File(file) if identify => {
                send(&worker, &ToWorker::Identify).and_then(|()| worker.post_message(file))
            }
            FirstMessage::File(file) => worker.post_message(file),
            FirstMessage::Message(message) => send(&worker, message),
        };
        given.map_err(|_| failure::NO_WORKER.to_owned())?;
        self.0.firsts.borrow_mut().insert(key, first);
        let (pending, copying, reading) = (FewMap::default(), None, None);
        let connection = Connection {
            worker,
            pending,
            copying,
            reading,
            answers: Answers::default(),
            _on_message: on_message,
            _on_error: on_error,
        };
        self.0.open.borrow_mut().insert(key, connection);
        Ok(())
    }

    /// Terminates a file's worker, whatever it is doing. Its open questions are never answered.
    pub fn close(&self, key: FileKey) {
        // Removed first: dropping it calls into the browser, which must not find the map borrowed.
        let connection = self.0.open.borrow_mut().remove(&key);
        drop(connection);
        self.count_pending();
        self.0.firsts.borrow_mut().remove(&key);
        self.0.desks.close(key);
    }

    /// Returns an id that no other open question has.
    fn next_id(&self) -> u32 {
        let id = self.0.next_question.get();
        self.0.next_question.set(id.wrapping_add(1));
        id
    }

    /// Sends a question. `reply` is called once, or never if the file is closed first. A question that several views ask
    /// at the same time is sent once.
    pub fn ask(&self, key: FileKey, device: u32, query: Query, reply: Callback<Rc<Answer>>) {
        let mut open = self.0.open.borrow_mut();
        let Some(connection) = open.get_mut(&key) else { return };
        let version = connection.answers.version();
        let is_same = |other: &&mut Pending| other.version == version && other.device == device && other.query == query;
        if let Some(same) = connection.pending.values_mut().find(is_same) {
            same.replies.push(reply);
            return;
        }
        let id = self.next_id();
        if send(&connection.worker, &ToWorker::Ask { id, device, query: query.clone() }).is_ok() {
            connection.pending.insert(id, Pending { device, query, version, replies: vec![reply] });
            drop(open);
            self.count_pending();
        }
    }

    /// Returns the answer to a question that was asked before, if the file's data has not changed since.
    pub fn recall(&self, key: FileKey, device: u32, query: &Query) -> Option<Rc<Answer>> {
        self.0.open.borrow_mut().get_mut(&key)?.answers.recall(device, query)
    }

    /// Writes the number of questions without an answer to the root element's `data-pending`, for scripts that drive the
    /// page: at 0, and once the next frame is drawn, the page shows all there is.
    fn count_pending(&self) {
        let pending: usize = self.0.open.borrow().values().map(|connection| connection.pending.values().count()).sum();
        // Fails only if the name were invalid.
        let _ = root().set_attribute("data-pending", &pending.to_string());
    }

    /// Sends a file's worker a message that has no answer.
    pub fn tell(&self, key: FileKey, message: &ToWorker) {
        if let Some(connection) = self.0.open.borrow().get(&key) {
            // Fails only with the worker, which does nothing more then.
            let _ = send(&connection.worker, message);
        }
    }

    /// Requests a copy of a file's trace for somebody else. `message` makes the request
    /// with an id. A copy that was requested before is not delivered any more.
    pub fn copy(&self, key: FileKey, message: impl FnOnce(u32) -> ToWorker, reply: Callback<Copied>) {
        let mut open = self.0.open.borrow_mut();
        let Some(connection) = open.get_mut(&key) else { return };
        let id = self.next_id();
        if send(&connection.worker, &message(id)).is_ok() {
            connection.copying = Some((id, reply));
        }
    }

    /// Requests a recording of a what-if run of a file, as [`Self::copy`] requests a copy. The run moves to the worker.
    pub fn record(&self, key: FileKey, (device, name): (u32, String), run: &ArrayBuffer, reply: Callback<Copied>) {
        let mut open = self.0.open.borrow_mut();
        let Some(connection) = open.get_mut(&key) else { return };
        let id = self.next_id();
        let message = encode(&ToWorker::Record { id, device, name });
        let both = Array::of2(&Uint8Array::from(message.as_slice()).buffer(), run);
        // Fails only with the worker, which sends nothing more then.
        if connection.worker.post_message_with_transfer(&both, &both).is_ok() {
            connection.copying = Some((id, reply));
        }
    }

    /// Asks for the requests of a device, for a what-if worker. Those that were asked for before are not delivered any more.
    pub fn requests(&self, key: FileKey, device: u32, reply: Callback<ArrayBuffer>) {
        let mut open = self.0.open.borrow_mut();
        let Some(connection) = open.get_mut(&key) else { return };
        let id = self.next_id();
        if send(&connection.worker, &ToWorker::Requests { id, device }).is_ok() {
            connection.reading = Some((id, reply));
        }
    }

    /// Returns the what-if workers.
    pub fn desks(&self) -> &Desks {
        &self.0.desks
    }

    /// Withdraws the request for a copy.
    pub fn forget_copy(&self, key: FileKey) {
        if let Some(connection) = self.0.open.borrow_mut().get_mut(&key) {
            connection.copying = None;
            // Fails only with the worker, which sends nothing more then.
            let _ = send(&connection.worker, &ToWorker::ForgetCopy);
        }
    }

    fn deliver(&self, key: FileKey, id: u32, copied: Copied) {
        let copying = self.0.open.borrow().get(&key).and_then(|connection| connection.copying.clone());
        if let Some((_, reply)) = copying.filter(|(wanted, _)| *wanted == id) {
            reply.emit(copied);
        }
    }

    fn hand_on(&self, key: FileKey, id: u32, requests: JsValue) {
        let mut open = self.0.open.borrow_mut();
        let reading = open.get_mut(&key).and_then(|connection| connection.reading.take_if(|(wanted, _)| *wanted == id));
        drop(open);
        if let (Some((_, reply)), Ok(requests)) = (reading, requests.dyn_into::<ArrayBuffer>()) {
            reply.emit(requests);
        }
    }

    /// Tells the worker that the last state of its session has been drawn, and which allocation is selected: its device's
    /// index, and its number.
    pub fn drawn(&self, key: FileKey, selected: Option<(u32, u32)>) {
        if let Some(connection) = self.0.open.borrow().get(&key) {
            // Fails only with the worker, which sends nothing more then.
            let _ = send(&connection.worker, &ToWorker::Drawn { selected });
        }
    }

    /// Requests the identity of a file that has been read.
    pub fn identify(&self, key: FileKey) {
        if let Some(connection) = self.0.open.borrow().get(&key) {
            // Fails only with the worker, and then the file's links have its name only.
            let _ = send(&connection.worker, &ToWorker::Identify);
        }
    }

    /// Tells all workers the user's own rules, and those that are started later.
    pub fn set_rules(&self, rules: &OwnRules) {
        self.0.rules.replace(rules.clone());
        for connection in self.0.open.borrow_mut().values_mut() {
            connection.answers.outdate();
            // Fails only with the worker, which sends nothing more then.
            let _ = send(&connection.worker, &ToWorker::SetRules(rules.clone()));
        }
    }

    /// Tells the worker whether the view of its session is paused.
    pub fn hold(&self, key: FileKey, is_held: bool) {
        if let Some(connection) = self.0.open.borrow().get(&key) {
            // Fails only with the worker, which sends nothing more then.
            let _ = send(&connection.worker, &ToWorker::Pause(is_held));
        }
    }

    fn receive(&self, key: FileKey, data: &JsValue, report: &Callback<FromWorker>) {
        // worker.js sends a string when WebAssembly itself fails.
        if let Some(text) = data.as_string() {
            report.emit(FromWorker::Failed { message: failure::sentence(&text) });
            return;
        }
        if let Some(pair) = data.dyn_ref::<Array>() {
            match (decode(&Uint8Array::new(&pair.get(0)).to_vec()), pair.get(1)) {
                (Some(FromWorker::Packed { id }), copy) => {
                    if let Ok(copy) = copy.dyn_into::<Blob>() {
                        self.deliver(key, id, Copied::Packed(copy));
                    }
                }
                (Some(FromWorker::Requests { id }), requests) => self.hand_on(key, id, requests),
                _ => {}
            }
            return;
        }
        let Some(buffer) = data.dyn_ref::<ArrayBuffer>() else { return };
        let bytes = Uint8Array::new(buffer).to_vec();
        let message = decode(&bytes);
        let mut open = self.0.open.borrow_mut();
        let connection = open.get_mut(&key);
        match message {
            Some(FromWorker::Answer { id, answer }) => {
                let Some(connection) = connection else { return };
                let Some(Pending { device, query, version, replies }) = connection.pending.remove(&id) else { return };
                let answer = Rc::<Answer>::from(answer);
                connection.answers.keep(version, (device, query), &answer, bytes.len());
                drop(open);
                if !self.0.has_answered.replace(true) {
                    mark("first answer");
                }
                if matches!(*answer, Answer::Diagnosis(_)) {
                    mark("findings received");
                }
                for reply in replies {
                    reply.emit(Rc::clone(&answer));
                }
                // Afterwards, so that the questions that an answer leads to leave no moment at 0 before them.
                self.count_pending();
            }
            Some(FromWorker::Contents { id, contents, moved }) => {
                drop(open);
                self.deliver(key, id, Copied::Contents { contents, moved });
            }
            message => {
                if matches!(message, Some(FromWorker::Loaded(_))) {
                    mark("summary received");
                }
                let message = message.unwrap_or_else(|| FromWorker::Failed { message: failure::GARBLED.to_owned() });
                if let Some(connection) = connection.filter(|_| message.outdates_answers()) {
                    connection.answers.outdate();
                }
                drop(open);
                report.emit(message);
            }
        }
    }
}

fn send(worker: &Worker, message: &ToWorker) -> Result<(), JsValue> {
    let buffer = Uint8Array::from(encode(message).as_slice()).buffer();
    worker.post_message_with_transfer(&buffer, &Array::of1(&buffer))
}

/// Writes a moment to the browser's performance timeline, where developer tools and tests/measure/stages.mjs read it.
fn mark(name: &str) {
    if let Some(performance) = crate::browser::window().performance() {
        // Nothing depends on it.
        let _ = performance.mark(name);
    }
}

fn start() -> Result<Worker, JsValue> {
    let start = START.with_borrow(Option::clone).ok_or_else(|| JsValue::from_str("boot.js set no starter"))?;
    start.call0(&JsValue::NULL)?.dyn_into()
}
