//! The browser side of Vramscope: one WebAssembly module with two entries, the page and the worker behind each file.
//!
//! ```text
//! source ─► worker (reads, indexes, answers) ─► model ─► views ─► render
//! ```
//! - `shell` is the frame around the views, `source` takes files in, `worker` keeps what is heavy off the page, `model`
//!   is the page's one state with its one update function, `views` read it and send actions, `render` paints on
//!   canvases, `input` is the one registry of commands, `theme` the looks, `widgets` what views share.
//! - Nothing of a file leaves the browser, text of a file is never parsed as HTML, and no style is written inline.
#![allow(
    unreachable_pub,
    reason = "nothing but the two entries leaves this crate: `pub` means for the other modules, and the compiler still \
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

/// Draws the page. Called once, by boot.js.
#[wasm_bindgen]
pub fn start_page() {
    crash::watch_page();
    app::start();
}

/// Serves one file. Called once in each worker, by worker.js.
#[wasm_bindgen]
pub fn start_worker() {
    worker::entry::start();
}
