//! A WebSocket and a timer in a worker, which end when they are dropped.

use js_sys::{ArrayBuffer, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{BinaryType, MessageEvent, WebSocket};

use crate::entry::scope;

/// An event of a socket.
pub enum SocketEvent {
    /// The socket is open.
    Opened,
    /// Bytes arrived.
    Received(Vec<u8>),
    /// The socket is closed, or could not be opened.
    Closed,
}

/// A socket. Dropping it closes it; no event follows.
pub struct Socket {
    socket: WebSocket,
    _on_open: Closure<dyn FnMut(JsValue)>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_close: Closure<dyn FnMut(JsValue)>,
}

impl Socket {
    /// Opens a socket; `None` if the browser refuses the URL.
    pub fn open(url: &str, handle: impl Fn(SocketEvent) + Copy + 'static) -> Option<Self> {
        let socket = WebSocket::new(url).ok()?;
        socket.set_binary_type(BinaryType::Arraybuffer);
        let on_open = Closure::<dyn FnMut(JsValue)>::new(move |_| handle(SocketEvent::Opened));
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Some(bytes) = event.data().dyn_ref::<ArrayBuffer>() {
                handle(SocketEvent::Received(Uint8Array::new(bytes).to_vec()));
            }
        });
        // Follows every error as well. Handled a moment later, because the handler drops this socket.
        let on_close = Closure::<dyn FnMut(JsValue)>::new(move |_| {
            soon(move || handle(SocketEvent::Closed));
        });
        socket.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        Some(Self { socket, _on_open: on_open, _on_message: on_message, _on_close: on_close })
    }

    /// Sends bytes. If that fails, the connection is lost, and [`SocketEvent::Closed`] follows.
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

/// A delayed call, cancelled when this is dropped.
pub struct Timer {
    id: i32,
    _call: Closure<dyn FnMut()>,
}

impl Timer {
    /// Calls once after `milliseconds`. The call may drop its own timer.
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
        // Has no effect after the call.
        scope().clear_timeout_with_handle(self.id);
    }
}

/// Calls after the current task: a closure must not be dropped while it runs.
fn soon(call: impl FnOnce() + 'static) {
    wasm_bindgen_futures::spawn_local(async move { call() });
}
