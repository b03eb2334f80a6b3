//! The engine's end of the protocol: reads its one file, or watches its one session, and answers questions about it until
//! the worker is terminated.

use std::cell::{Cell, RefCell};
use std::hint::black_box;

use format::import::{ImportError, Importer};
use format::sweep;
use js_sys::{Array, ArrayBuffer, Uint8Array};
use protocol::failure;
use protocol::message::{FromWorker, Stage as Progress, ToWorker, decode, encode};
use query::Summary;
use query::own_rules::OwnRules;
use query::sweep::SweepPicture;
use session::Session;
use trace::limits::{ImportLimits, SWEEP_BYTES};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{DedicatedWorkerGlobalScope, File, MessageEvent, ReadableStream};

use crate::identity::{self, Hashing};
use crate::reader::Bytes;
use crate::stages::{Stage, stage};
use crate::{fetch, live, pack, ranges, warm};

/// Milliseconds between two reports of progress.
pub const REPORT_EVERY_MS: f64 = 100.0;

/// A file that has been read.
enum Opened {
    Trace(Box<Session>),
    Sweep(Box<SweepPicture>),
}

/// The unit in which indexing reports its progress.
const INDEX_PARTS: u64 = 1000;

thread_local! {
    /// Answers questions once the file has been read.
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
    /// The user's own rules.
    static OWN_RULES: RefCell<OwnRules> = RefCell::default();
    /// The size of the worker's memory in bytes that was last reported to the page.
    static REPORTED_BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Waits for the file or the session, then for questions.
pub fn start() {
    std::panic::set_hook(Box::new(|info| {
        web_sys::console::error_1(&info.to_string().into());
        post(&FromWorker::Failed { message: failure::sentence(&info.to_string()) });
    }));
    grow_heap(0);
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        let data = event.data();
        if let Some(file) = data.dyn_ref::<File>() {
            warm::stop();
            spawn_local(read(file.clone()));
        } else if data.is_string() {
            // The only string that the page sends: there is time to warm up.
            spawn_local(warm::run());
        } else if let Some(bytes) = data.dyn_ref::<ArrayBuffer>() {
            receive(&Uint8Array::new(bytes).to_vec());
        } else if let Some(both) = data.dyn_ref::<Array>() {
            let [message, run] = [0, 1].map(|place| Uint8Array::new(&both.get(place)).to_vec());
            record(&message, &run);
        }
    });
    scope().set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    // The listener is needed for as long as the worker lives.
    on_message.forget();
}

/// Returns the worker's global scope.
pub fn scope() -> DedicatedWorkerGlobalScope {
    js_sys::global().unchecked_into()
}

/// Returns a precise time in milliseconds since the worker was started.
pub fn now() -> f64 {
    scope().performance().map_or_else(js_sys::Date::now, |clock| clock.now())
}

/// Sends a message to the page, followed by the size of the worker's memory if that has grown.
pub fn post(message: &FromWorker) {
    send(message);
    if let Some(bytes) = grown() {
        send(&FromWorker::Memory { bytes });
    }
}

/// Returns the size of the worker's memory in bytes, if it has grown noticeably since the last report.
fn grown() -> Option<u64> {
    /// The smallest growth in bytes that is worth a message.
    const NOTICEABLE: u64 = 1 << 20;
    let memory: js_sys::WebAssembly::Memory = wasm_bindgen::memory().dyn_into().ok()?;
    let bytes = memory.buffer().unchecked_into::<ArrayBuffer>().byte_length().into();
    REPORTED_BYTES
        .with(|reported| (bytes >= reported.get() + NOTICEABLE).then(|| reported.replace(bytes)))
        .map(|_| bytes)
}

fn send(message: &FromWorker) {
    let bytes = encode(message);
    let buffer = Uint8Array::from(bytes.as_slice()).buffer();
    let _ = scope().post_message_with_transfer(&buffer, &Array::of1(&buffer));
}

/// Sends a message to the page, with data that the page hands on without a copy.
fn post_with(message: &FromWorker, data: &impl serde::Serialize) {
    let [message, data] = [encode(message), encode(data)].map(|bytes| Uint8Array::from(bytes.as_slice()).buffer());
    let _ = scope().post_message_with_transfer(&Array::of2(&message, &data), &Array::of2(&message, &data));
}

/// Returns the mean rate of a download in bytes per second; 0 while it is too short to say.
pub fn rate(bytes: u64, milliseconds: f64) -> f64 {
    if milliseconds < REPORT_EVERY_MS { 0.0 } else { bytes as f64 / milliseconds * 1e3 }
}

fn receive(bytes: &[u8]) {
    match decode(bytes) {
        Some(ToWorker::Ask { id, device, query }) => {
            identity::asked();
            warm::stop();
            // The page asks only after it has received a summary.
            let answer = SESSION
                .with_borrow_mut(|session| session.as_mut().map(|session| session.answer(device as usize, &query)))
                .or_else(|| ranges::answer(device, &query))
                .or_else(|| live::answer(device as usize, &query));
            if let Some(answer) = answer {
                post(&FromWorker::Answer { id, answer: Box::new(answer) });
            }
        }
        Some(ToWorker::Watch { url, token }) => {
            warm::stop();
            live::start(url, token);
            OWN_RULES.with_borrow(live::set_rules);
        }
        Some(ToWorker::Fetch { url, token }) => {
            warm::stop();
            spawn_local(download(url, token));
        }
        Some(ToWorker::OpenShared { url, token, key }) => {
            warm::stop();
            spawn_local(ranges::open(ranges::Link { url, token, key }));
        }
        Some(ToWorker::ResumeDownload) => ranges::continue_download(),
        Some(ToWorker::FetchElsewhere { url }) => {
            warm::stop();
            spawn_local(download_elsewhere(url));
        }
        Some(ToWorker::Drawn { selected }) => live::drawn(selected),
        Some(ToWorker::SetRules(rules)) => {
            SESSION.with_borrow_mut(|session| {
                if let Some(session) = session {
                    session.set_own_rules(&rules);
                    post(&FromWorker::Refolded(Box::new(session.summary().clone())));
                }
            });
            live::set_rules(&rules);
            OWN_RULES.set(rules);
        }
        Some(ToWorker::Pause(is_paused)) => live::pause(is_paused),
        Some(ToWorker::Identify) => identity::find(),
        Some(ToWorker::Copy { id, name, redaction, named, is_running }) => SESSION.with_borrow_mut(|session| {
            if let Some(session) = session {
                if is_running {
                    session.expect_more();
                }
                pack::copy(session, id, &name, &redaction, named);
            }
        }),
        Some(ToWorker::ForgetCopy) => pack::forget(),
        Some(ToWorker::Requests { id, device }) => {
            let device = device as usize;
            let of_file = SESSION.with_borrow(|session| session.as_ref().map(|session| session.requests(device)));
            // The page asks for a device of the summary, after all of it is here.
            if let Some(found) = of_file.unwrap_or_else(|| live::requests(device)) {
                post_with(&FromWorker::Requests { id }, &found);
            }
        }
        // It comes together with a run.
        Some(ToWorker::Record { .. }) => {}
        None => post(&FromWorker::Failed { message: failure::GARBLED.to_owned() }),
    }
}

/// Makes a recording of a what-if run.
fn record(message: &[u8], run: &[u8]) {
    if let Some(ToWorker::Record { id, device, name }) = decode(message) {
        let message = FromWorker::Packed { id };
        SESSION.with_borrow_mut(|session| match session {
            Some(session) => pack::run(session, &message, device as usize, &name, run),
            None => live::record(&message, device as usize, &name, run),
        });
    }
}

async fn read(file: File) {
    let mut hashing = Hashing::if_awaited();
    let imported = import(Bytes::of(&file), hashing.as_mut(), failure::unreadable).await;
    if hashing.is_none() {
        identity::keep(file);
    }
    finish(imported, hashing);
}

async fn download(url: String, token: String) {
    read_stream(fetch::get(&url, &token).await).await;
}

async fn download_elsewhere(url: String) {
    read_stream(fetch::get_elsewhere(&url).await).await;
}

/// Reads a download of a known length. It can't be read a second time, so it is always hashed.
async fn read_stream(found: Result<(ReadableStream, u64), String>) {
    let mut hashing = Hashing::default();
    let imported = match found {
        Ok((stream, size)) => import(Bytes::of_stream(&stream, size), Some(&mut hashing), failure::broken_off).await,
        Err(message) => Err(message),
    };
    finish(imported, Some(hashing));
}

fn finish(opened: Result<Opened, String>, hashing: Option<Hashing>) {
    match opened {
        Ok(Opened::Sweep(sweep)) => post(&FromWorker::Sweep(sweep)),
        Ok(Opened::Trace(session)) => {
            // A link is applied to the summary, and must know before whether the file is its own.
            if let Some(hashing) = hashing {
                post(&FromWorker::Hashed { hash: hashing.finish() });
            }
            let summary = keep(*session);
            post(&FromWorker::Loaded(summary.clone()));
            spawn_local(warm::prepare(summary, |device, query| {
                SESSION.with_borrow_mut(|session| session.as_mut().map(|session| session.answer(device, query)));
            }));
        }
        Err(message) => post(&FromWorker::Failed { message }),
    }
}

/// Answers questions from a session from now on. Returns its summary.
pub fn keep(mut session: Session) -> Box<Summary> {
    OWN_RULES.with_borrow(|rules| session.set_own_rules(rules));
    let summary = Box::new(session.summary().clone());
    SESSION.set(Some(session));
    summary
}

/// Grows WebAssembly's memory once by what a file needs at most: growing it in small steps took a tenth of the time.
/// Memory that is not needed costs nothing until it is written to. Entries without stacks of their own need the most: a
/// file and its indexes take about three quarters of the file's size.
fn grow_heap(file_bytes: u64) {
    /// A browser may refuse to grow by more at once, and still grant smaller steps.
    const MOST: u64 = 1 << 30;
    /// What most files need.
    const LEAST: u64 = 1 << 25;
    let likely = file_bytes.saturating_mul(8) / 10;
    let mut room: Vec<u8> = Vec::new();
    // If it is refused, memory grows as it is needed.
    let _ = room.try_reserve_exact(likely.clamp(LEAST, MOST) as usize);
    // What nobody looks at, a compiler may leave out.
    black_box(&room);
}

/// Reads and indexes a file, and hashes its bytes on the way. The error is a sentence for the user; `stopped` makes it of the
/// browser's where the bytes don't arrive.
async fn import(
    mut bytes: Bytes,
    mut hashing: Option<&mut Hashing>,
    stopped: fn(&str) -> String,
) -> Result<Opened, String> {
    let mut importer = Importer::new(ImportLimits::default());
    let mut buffer = Vec::new();
    let (size, start) = (bytes.size(), now());
    grow_heap(size);
    let (mut waiting, mut parsing) = (Stage::new("wait for bytes"), Stage::new("parse"));
    let mut hash_stage = Stage::new("hash");
    // The first bytes are reported at once.
    let (mut done, mut reported, mut time) = (0, f64::NEG_INFINITY, start);
    while bytes.next(&mut buffer).await.map_err(|error| stopped(&error))? {
        time = waiting.add(time);
        match importer.push(&buffer) {
            Err(ImportError::Sweep(head)) => return read_sweep(head, bytes, stopped).await,
            pushed => pushed.map_err(|error| error.to_string())?,
        }
        time = parsing.add(time);
        if let Some(hashing) = &mut hashing {
            hashing.add(&buffer);
            time = hash_stage.add(time);
        }
        done += buffer.len() as u64;
        if time - reported >= REPORT_EVERY_MS {
            reported = time;
            let bytes_per_second = rate(done, time - start);
            let total = if size == 0 { 0 } else { size.max(done) };
            post(&FromWorker::Progress { stage: Progress::Reading, done, total, bytes_per_second });
        }
    }
    waiting.finish();
    parsing.finish();
    hash_stage.finish();
    drop(buffer);
    let built = build(importer, &mut |share| {
        // Casts of floating point saturate, and turn NaN into 0.
        let done = ((f64::from(share) * INDEX_PARTS as f64) as u64).min(INDEX_PARTS);
        post(&FromWorker::Progress { stage: Progress::Indexing, done, total: INDEX_PARTS, bytes_per_second: 0.0 });
    });
    built.map(|session| Opened::Trace(Box::new(session)))
}

/// Reads the rest of a sweep's document that begins with `document`.
async fn read_sweep(mut document: Vec<u8>, mut bytes: Bytes, stopped: fn(&str) -> String) -> Result<Opened, String> {
    let mut buffer = Vec::new();
    // One that is too large is refused for its first bytes.
    while document.len() <= SWEEP_BYTES && bytes.next(&mut buffer).await.map_err(|error| stopped(&error))? {
        document.extend_from_slice(&buffer);
    }
    sweep::read(&document).map(|sweep| Opened::Sweep(Box::new(sweep.shown()))).map_err(|error| error.to_string())
}

/// Indexes a file that has been read, and calls `report` with the share that is done.
pub fn build(importer: Importer, report: &mut dyn FnMut(f32)) -> Result<Session, String> {
    report(0.0);
    let imported = stage("assemble", || importer.finish()).map_err(|error| error.to_string())?;
    Ok(stage("index", || Session::build(imported, report)))
}
