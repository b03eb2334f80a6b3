//! The page's end of the what-if protocol: starts the workers, hands them requests, and hears what they say.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, ArrayBuffer, Function, Uint8Array};
use protocol::failure;
use protocol::message::{decode, encode};
use protocol::whatif::{CurvesAsked, FromWhatIf, ToWhatIf};
use trace::few_map::FewMap;
use wasm_bindgen::prelude::*;
use web_sys::{ErrorEvent, Event, MessageEvent, Worker};
use yew::Callback;

use crate::model::{Curves, FileKey};

thread_local! {
    /// Starts a worker and hands it the compiled module, which is downloaded with the first one. Comes from boot.js.
    static START: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Sets the function that starts workers. Called once, before the page is drawn.
pub fn set_whatif_starter(start: Function) {
    START.set(Some(start));
}

/// The what-if workers, at most one for each open file.
#[derive(Clone, Default)]
pub struct Desks(Rc<RefCell<FewMap<FileKey, Desk>>>);

/// Who asks for curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurvesFor {
    /// The view that fills the page.
    View,
    /// The overview above it.
    Overview,
}

struct Desk {
    worker: Worker,
    /// Who waits for curves, while a question for them is in flight.
    curves: Option<Callback<Curves>>,
    /// The questions for curves to send next, by who asks ([`CurvesFor`]). Each replaces an earlier one that was never sent.
    next_curves: [Option<(CurvesAsked, Callback<Curves>)>; 2],
    /// Who waits for the events of a run.
    tracing: Option<(u32, Callback<ArrayBuffer>)>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_error: Closure<dyn FnMut(Event)>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}

impl Desks {
    /// Starts a worker on the requests of a device, in place of the file's last one. The requests move there without a
    /// copy. Everything but curves goes to `hear`.
    pub fn start(&self, key: FileKey, requests: &ArrayBuffer, hear: Callback<FromWhatIf>) {
        self.close(key);
        let failed = |error: &str| FromWhatIf::Failed(failure::whatif_sentence(error));
        let Some(worker) = start() else { return hear.emit(FromWhatIf::Failed(failure::NO_WORKER.to_owned())) };
        let on_message = {
            let (desks, hear) = (self.clone(), hear.clone());
            Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
                // rerun.js sends a string when WebAssembly itself fails.
                let said = match (event.data().as_string(), event.data().dyn_ref::<ArrayBuffer>()) {
                    (Some(text), _) => failed(&text),
                    (None, Some(bytes)) => decode(&Uint8Array::new(bytes).to_vec())
                        .unwrap_or_else(|| FromWhatIf::Failed(failure::GARBLED.to_owned())),
                    (None, None) => return desks.traced(key, &event.data()),
                };
                match said {
                    FromWhatIf::Curves(asked, curves) => desks.drawn(key, (asked, curves)),
                    other => hear.emit(other),
                }
            })
        };
        let on_error = Closure::<dyn FnMut(Event)>::new(move |event: Event| {
            event.prevent_default();
            let message = event.dyn_ref::<ErrorEvent>().map(ErrorEvent::message).unwrap_or_default();
            hear.emit(failed(&message));
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        // Fails only for a buffer that was moved before.
        let _ = worker.post_message_with_transfer(requests, &Array::of1(requests));
        let (curves, next_curves, tracing) = (None, [const { None }; 2], None);
        let desk = Desk { worker, curves, next_curves, tracing, _on_message: on_message, _on_error: on_error };
        self.0.borrow_mut().insert(key, desk);
    }

    /// Ends a file's worker, whatever it is doing.
    pub fn close(&self, key: FileKey) {
        // Removed first: dropping it calls into the browser, which must not find the map borrowed.
        let desk = self.0.borrow_mut().remove(&key);
        drop(desk);
    }

    /// Sends a message to a file's worker.
    pub fn tell(&self, key: FileKey, message: &ToWhatIf) {
        if let Some(desk) = self.0.borrow().get(&key) {
            send(&desk.worker, message);
        }
    }

    /// Asks for the curves of all runs. Of questions of one asker that pile up only the last one is sent.
    pub fn ask_curves(&self, key: FileKey, by: CurvesFor, asked: CurvesAsked, reply: Callback<Curves>) {
        if let Some(desk) = self.0.borrow_mut().get_mut(&key) {
            desk.next_curves[by as usize] = Some((asked, reply));
            desk.send_curves();
        }
    }

    /// Asks for every event of a run. Those that were asked for before are not delivered any more.
    pub fn trace(&self, key: FileKey, id: u32, reply: Callback<ArrayBuffer>) {
        if let Some(desk) = self.0.borrow_mut().get_mut(&key) {
            desk.tracing = Some((id, reply));
            send(&desk.worker, &ToWhatIf::Trace(id));
        }
    }

    fn traced(&self, key: FileKey, data: &JsValue) {
        let Some(both) = data.dyn_ref::<Array>() else { return };
        let (message, run) = (decode(&Uint8Array::new(&both.get(0)).to_vec()), both.get(1).dyn_into::<ArrayBuffer>());
        let (Some(FromWhatIf::Traced(id)), Ok(run)) = (message, run) else { return };
        let mut desks = self.0.borrow_mut();
        let tracing = desks.get_mut(&key).and_then(|desk| desk.tracing.take_if(|(wanted, _)| *wanted == id));
        drop(desks);
        if let Some((_, reply)) = tracing {
            reply.emit(run);
        }
    }

    fn drawn(&self, key: FileKey, curves: Curves) {
        let reply = self.0.borrow_mut().get_mut(&key).and_then(|desk| desk.curves.take());
        if let Some(reply) = reply {
            reply.emit(curves);
        }
        if let Some(desk) = self.0.borrow_mut().get_mut(&key) {
            desk.send_curves();
        }
    }
}

impl Desk {
    fn send_curves(&mut self) {
        if self.curves.is_none()
            && let Some((asked, reply)) = self.next_curves.iter_mut().find_map(Option::take)
        {
            self.curves = Some(reply);
            send(&self.worker, &ToWhatIf::Curves(asked));
        }
    }
}

fn send(worker: &Worker, message: &ToWhatIf) {
    let buffer = Uint8Array::from(encode(message).as_slice()).buffer();
    // Fails only with the worker, which says nothing more then.
    let _ = worker.post_message_with_transfer(&buffer, &Array::of1(&buffer));
}

fn start() -> Option<Worker> {
    let start = START.with_borrow(Option::clone)?;
    start.call0(&JsValue::NULL).ok()?.dyn_into().ok()
}
