//! The page of Vramscope: the WebAssembly module that draws. It is compiled for size.
//!
//! ```text
//! source ─► worker ═══► engine (reads, indexes, answers) ═══► worker ─► model ─► views ─► render
//! ```
//! - `source` opens files and sessions, `worker` sends them to the engine's workers and delivers their answers, `model` is
//!   the page's one state with its one update function, `views` read the model and send actions, `render` paints on
//!   canvases, `shell` is the frame around the views, `input` the registry of commands, `theme` the colours, `widgets` what
//!   views share.
//! - The engine is a module of its own, the crate `engine`; the messages between the two are the crate `protocol`.
//! - Nothing of a file leaves the browser, text of a file is never parsed as HTML, and no style is written inline.
#![allow(
    unreachable_pub,
    reason = "nothing but the entry leaves this crate: `pub` means for the other modules, and the compiler still \
              finds what none of them uses"
)]

mod address;
mod app;
mod browser;
mod crash;
mod hooks;
mod input;
mod model;
mod render;
mod shell;
mod source;
mod theme;
mod views;
mod widgets;
mod worker;

use wasm_bindgen::prelude::wasm_bindgen;

/// Draws the page. Called once, by boot.js, with a function that starts a worker of the engine.
#[wasm_bindgen]
pub fn start_page(start_worker: js_sys::Function) {
    crash::watch_page();
    worker::client::set_starter(start_worker);
    app::start();
}
