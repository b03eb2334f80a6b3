//! The worker's end of the protocol: messages in, messages out, and one piece of work after the other in between.

use std::cell::{Cell, RefCell};

use js_sys::{Array, ArrayBuffer, Uint8Array};
use protocol::failure;
use protocol::message::{decode, encode};
use protocol::whatif::{FromWhatIf, ToWhatIf};
use wasm_bindgen::prelude::*;
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

use crate::desk::Desk;

thread_local! {
    static DESK: RefCell<Option<Desk>> = const { RefCell::new(None) };
    /// Whether the next piece of work is due.
    static IS_DUE: Cell<bool> = const { Cell::new(false) };
    static WORK: Closure<dyn FnMut()> = Closure::new(work);
}

/// Waits for the requests, then for questions.
pub fn start() {
    std::panic::set_hook(Box::new(|info| {
        web_sys::console::error_1(&info.to_string().into());
        post(&FromWhatIf::Failed(failure::whatif_sentence(&info.to_string())));
    }));
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        if let Some(bytes) = event.data().dyn_ref::<ArrayBuffer>() {
            receive(&Uint8Array::new(bytes).to_vec());
        }
    });
    scope().set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    // The listener is needed for as long as the worker lives.
    on_message.forget();
}

fn scope() -> DedicatedWorkerGlobalScope {
    js_sys::global().unchecked_into()
}

fn post(message: &FromWhatIf) {
    let bytes = encode(message);
    let buffer = Uint8Array::from(bytes.as_slice()).buffer();
    let _ = scope().post_message_with_transfer(&buffer, &Array::of1(&buffer));
}

/// Sends a message with bytes, which are moved and not copied.
fn post_with(message: &FromWhatIf, bytes: &[u8]) {
    let message = encode(message);
    let [message, bytes] = [message.as_slice(), bytes].map(|bytes| Uint8Array::from(bytes).buffer());
    let both = Array::of2(&message, &bytes);
    // Can't fail: both buffers are new.
    let _ = scope().post_message_with_transfer(&both, &both);
}

fn receive(bytes: &[u8]) {
    DESK.with_borrow_mut(|desk| match desk {
        None => match decode(bytes).ok_or_else(|| failure::GARBLED.to_owned()).and_then(Desk::open) {
            Ok((new, opened)) => {
                post(&FromWhatIf::Opened(Box::new(opened)));
                *desk = Some(new);
            }
            Err(sentence) => post(&FromWhatIf::Failed(sentence)),
        },
        Some(desk) => match decode(bytes) {
            Some(ToWhatIf::Trace(id)) => {
                if let Some(run) = desk.trace(id) {
                    post_with(&FromWhatIf::Traced(id), &run);
                }
            }
            Some(message) => desk.receive(message).iter().for_each(post),
            None => post(&FromWhatIf::Failed(failure::GARBLED.to_owned())),
        },
    });
    work_later();
}

/// Does the next piece of work after the messages that have arrived by then.
fn work_later() {
    if !IS_DUE.replace(true) {
        // It fails only for a worker that ends.
        let _ = WORK.with(|work| {
            scope().set_timeout_with_callback_and_timeout_and_arguments_0(work.as_ref().unchecked_ref(), 0)
        });
    }
}

fn work() {
    IS_DUE.set(false);
    let done = DESK.with_borrow_mut(|desk| desk.as_mut().and_then(Desk::work));
    if let Some(done) = done {
        done.iter().for_each(post);
        work_later();
    }
}
