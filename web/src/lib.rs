#![doc = include_str!("../README.md")]
#![allow(
    unreachable_pub,
    reason = "nothing but the entry leaves this crate: `pub` means for the other modules, and the compiler still \
              finds what none of them uses"
)]

mod address;
mod app;
mod browser;
mod crash;
mod deferred;
mod hooks;
mod input;
mod later;
mod model;
mod render;
mod share;
mod shell;
mod source;
mod theme;
mod views;
mod widgets;
mod worker;

use wasm_bindgen::prelude::wasm_bindgen;

/// Draws the page. Called once, by boot.js, with functions that start a worker of the engine and one for what-if. A
/// page with a trace inside also passes a function that returns a promise of that trace as a file; other pages pass the
/// module recent.js.
#[wasm_bindgen]
pub fn start_page(
    start_worker: js_sys::Function,
    start_whatif: js_sys::Function,
    read_trace: Option<js_sys::Function>,
    recent: Option<js_sys::Object>,
) {
    crash::watch_page();
    worker::client::set_starter(start_worker);
    worker::set_whatif_starter(start_whatif);
    source::set_recent(recent);
    app::start(read_trace);
}
