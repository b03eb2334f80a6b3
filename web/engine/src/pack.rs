//! Copies of the trace to share: a comparison of the copy with the trace, and the copy itself as a recording.

use std::cell::Cell;

use format::redaction::compare;
use js_sys::{Array, Promise, Uint8Array};
use protocol::failure;
use protocol::message::{FromWorker, encode};
use query::copy::Named;
use query::redaction::Redaction;
use session::Session;
use session::preview;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, BlobPropertyBag};
use whatif::RunTrace;

use crate::entry::{post, scope};

/// Milliseconds that a copy waits before it is packed. A person who clicks several boxes waits for the last one only.
const REST_MS: i32 = 150;

thread_local! {
    /// The copy that was requested last.
    static NEWEST: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Makes a copy of the trace. Sends its comparison with the trace, and then the copy itself, unless another was
/// requested meanwhile.
pub fn copy(session: &mut Session, id: u32, name: &str, redaction: &Redaction, named: Named) {
    NEWEST.set(Some(id));
    let copy = session.copy(name, redaction, named);
    let contents = Box::new(compare(&copy.before, &copy.after, &copy.renamed));
    post(&FromWorker::Contents { id, contents, moved: copy.moved });
    spawn_local(async move {
        rest().await;
        if NEWEST.get() != Some(id) {
            return;
        }
        let message = FromWorker::Packed { id };
        let (header, snapshot) = copy.parts();
        send(&message, &preview::write(header, snapshot));
    });
}

/// Sends a run of a device's requests as a recording.
pub fn run(session: &mut Session, message: &FromWorker, device: usize, name: &str, run: &[u8]) {
    let Some(run) = RunTrace::from_bytes(run) else {
        return post(&FromWorker::Failed { message: failure::GARBLED.to_owned() });
    };
    if let Some(recording) = session.record_run(name, device, &run, format::write) {
        send(message, &recording);
    }
}

/// Sends a message with a recording.
fn send(message: &FromWorker, recording: &[u8]) {
    // Fails only if the browser has no room for the recording.
    if let Ok(blob) = blob(recording) {
        let bytes = encode(message);
        // The recording goes to the page by reference.
        let _ = scope().post_message(&Array::of2(&Uint8Array::from(bytes.as_slice()).buffer(), &blob));
    }
}

/// Withdraws the request for a copy.
pub fn forget() {
    NEWEST.set(None);
}

fn blob(bytes: &[u8]) -> Result<Blob, JsValue> {
    let kind = BlobPropertyBag::new();
    kind.set_type("application/octet-stream");
    Blob::new_with_u8_array_sequence_and_options(&Array::of1(&Uint8Array::from(bytes)), &kind)
}

/// Lets messages that have arrived be read first.
async fn rest() {
    let pause = Promise::new(&mut |resolve, _| {
        let _ = scope().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, REST_MS);
    });
    // Never rejected.
    let _ = JsFuture::from(pause).await;
}
