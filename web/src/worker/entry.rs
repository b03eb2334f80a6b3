//! The worker's end: reads its one file, or watches its one session, and answers questions about it until it is ended.

use std::cell::RefCell;

use js_sys::{Array, ArrayBuffer, Uint8Array};
use shared::import::Importer;
use shared::limits::ImportLimits;
use shared::order::Within;
use shared::session::Session;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{DedicatedWorkerGlobalScope, File, MessageEvent};

use super::message::{FromWorker, Stage, ToWorker, decode, encode};
use super::reader::Bytes;
use super::warm;
use super::{api, failure, live};

/// Milliseconds between two reports of progress.
const REPORT_EVERY_MS: f64 = 50.0;

/// Indexing is counted in so many parts.
const INDEX_PARTS: u64 = 1000;

thread_local! {
    /// What questions are answered from, once the file has been read.
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Waits for the file or the session, then for questions.
pub fn start() {
    std::panic::set_hook(Box::new(|info| {
        web_sys::console::error_1(&info.to_string().into());
        post(&FromWorker::Failed { message: failure::sentence(&info.to_string()) });
    }));
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        let data = event.data();
        if let Some(file) = data.dyn_ref::<File>() {
            warm::stop();
            spawn_local(read(file.clone()));
        } else if data.is_string() {
            // The only word that the page has for a worker: there is time.
            spawn_local(warm::run_in(scope()));
        } else if let Some(bytes) = data.dyn_ref::<ArrayBuffer>() {
            told(&Uint8Array::new(bytes).to_vec());
        }
    });
    scope().set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    // It listens for as long as the worker lives.
    on_message.forget();
}

pub(super) fn scope() -> DedicatedWorkerGlobalScope {
    js_sys::global().unchecked_into()
}

/// Milliseconds, from anywhere, but precisely.
pub(super) fn now() -> f64 {
    scope().performance().map_or_else(js_sys::Date::now, |clock| clock.now())
}

pub(super) fn post(message: &FromWorker) {
    // Neither can fail: every message has a form in bytes, and its buffer is new.
    let Ok(bytes) = encode(message) else { return };
    let buffer = Uint8Array::from(bytes.as_slice()).buffer();
    let _ = scope().post_message_with_transfer(&buffer, &Array::of1(&buffer));
}

fn told(bytes: &[u8]) {
    match decode(bytes) {
        Ok(ToWorker::Ask { id, device, query }) => {
            // The page asks only what has told it what it holds.
            let answer = SESSION
                .with_borrow_mut(|session| session.as_mut().map(|session| session.answer(device as usize, &query)))
                .or_else(|| live::answer(device as usize, &query));
            if let Some(answer) = answer {
                post(&FromWorker::Answer { id, answer: Box::new(answer) });
            }
        }
        Ok(ToWorker::Watch { url, token }) => {
            warm::stop();
            live::start(url, token);
        }
        Ok(ToWorker::Fetch { url, token }) => {
            warm::stop();
            spawn_local(fetch(url, token));
        }
        Ok(ToWorker::Taken { selected }) => live::taken(selected),
        Ok(ToWorker::Hold(is_held)) => live::hold(is_held),
        Err(_) => post(&FromWorker::Failed { message: failure::GARBLED.to_owned() }),
    }
}

async fn read(file: File) {
    finish(import(Bytes::of(&file)).await);
}

async fn fetch(url: String, token: String) {
    finish(match api::get(&url, &token).await {
        Ok((stream, size)) => import(Bytes::of_stream(&stream, size)).await,
        Err(message) => Err(message),
    });
}

fn finish(imported: Result<Session, String>) {
    match imported {
        Ok(session) => {
            let summary = Box::new(session.summary().clone());
            SESSION.set(Some(session));
            post(&FromWorker::Loaded(summary));
        }
        Err(message) => post(&FromWorker::Failed { message }),
    }
}

/// Takes the memory that a file is likely to need, once: WebAssembly's memory grows in small steps otherwise, and a
/// third of the time went into that. What was taken too much costs nothing until it is written to.
fn grow_heap(file_bytes: u64) {
    /// More is not asked for at once: a browser may refuse it, and smaller steps may still be had.
    const MOST: u64 = 1 << 30;
    let likely = file_bytes.saturating_mul(3) / 10;
    let mut room: Vec<u8> = Vec::new();
    // Where it is refused, memory grows as it is needed.
    let _ = room.try_reserve_exact(likely.min(MOST) as usize);
}

/// Reads and indexes a file. The error is a sentence.
async fn import(mut bytes: Bytes) -> Result<Session, String> {
    let mut importer = Importer::new(ImportLimits::default());
    let mut buffer = Vec::new();
    let (size, start) = (bytes.size(), now());
    grow_heap(size);
    let (mut done, mut reported) = (0, start);
    while bytes.next(&mut buffer).await.map_err(|error| failure::unreadable(&error))? {
        importer.push(&buffer).map_err(|error| error.to_string())?;
        done += buffer.len() as u64;
        let time = now();
        if time - reported >= REPORT_EVERY_MS {
            reported = time;
            let bytes_per_second = done as f64 / (time - start) * 1e3;
            let total = size.max(done);
            post(&FromWorker::Progress { stage: Stage::Reading, done, total, bytes_per_second });
        }
    }
    drop(buffer);
    let indexing = |share: f32| {
        let done = (f64::from(share.within(0.0, 1.0)) * INDEX_PARTS as f64) as u64;
        post(&FromWorker::Progress { stage: Stage::Indexing, done, total: INDEX_PARTS, bytes_per_second: 0.0 });
    };
    indexing(0.0);
    let imported = importer.finish().map_err(|error| error.to_string())?;
    Ok(Session::build(imported, &mut { indexing }))
}
