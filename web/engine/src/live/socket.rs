//! A WebSocket and a timer, as the worker has them.

use js_sys::{ArrayBuffer, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{BinaryType, MessageEvent, WebSocket};

use crate::entry::scope;

/// What happens to a socket.
pub enum Event {
    /// It is open.
    Opened,
    /// Bytes came.
    Came(Vec<u8>),
    /// It is closed, or could not be opened.
    Closed,
}

/// A socket; closed when it is dropped, and silent from then on.
pub struct Socket {
    socket: WebSocket,
    _on_open: Closure<dyn FnMut(JsValue)>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_close: Closure<dyn FnMut(JsValue)>,
}

impl Socket {
    /// Opens one; nothing where the browser doesn't try.
    pub fn open(url: &str, heard: impl Fn(Event) + Copy + 'static) -> Option<Self> {
        let socket = WebSocket::new(url).ok()?;
        socket.set_binary_type(BinaryType::Arraybuffer);
        let on_open = Closure::<dyn FnMut(JsValue)>::new(move |_| heard(Event::Opened));
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Some(bytes) = event.data().dyn_ref::<ArrayBuffer>() {
                heard(Event::Came(Uint8Array::new(bytes).to_vec()));
            }
        });
        // Comes after every error as well. A moment later, since this socket is dropped there.
        let on_close = Closure::<dyn FnMut(JsValue)>::new(move |_| {
            soon(move || heard(Event::Closed));
        });
        socket.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        Some(Self { socket, _on_open: on_open, _on_message: on_message, _on_close: on_close })
    }

    /// Sends bytes. What can't be sent is lost with the connection, which is told of then.
    pub fn send(&self, bytes: &[u8]) {
        let _ = self.socket.send_with_u8_array(bytes);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        let _ = self.socket.close();
    }
}

/// A call in a while, unless this is dropped before.
pub struct Timer {
    id: i32,
    _call: Closure<dyn FnMut()>,
}

impl Timer {
    /// Calls once after so many milliseconds. The call may drop its own timer.
    pub fn new(milliseconds: i32, call: impl FnOnce() + 'static) -> Option<Self> {
        let mut call = Some(call);
        let closure = Closure::<dyn FnMut()>::new(move || {
            if let Some(call) = call.take() {
                soon(call);
            }
        });
        let function = closure.as_ref().unchecked_ref();
        let id = scope().set_timeout_with_callback_and_timeout_and_arguments_0(function, milliseconds).ok()?;
        Some(Self { id, _call: closure })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // Of no effect on one that has called.
        scope().clear_timeout_with_handle(self.id);
    }
}

/// Calls when what runs now has returned: a closure must not be dropped while it runs.
fn soon(call: impl FnOnce() + 'static) {
    wasm_bindgen_futures::spawn_local(async move { call() });
}
