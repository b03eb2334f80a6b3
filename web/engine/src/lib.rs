//! The engine of Vramscope: the WebAssembly module that runs in the page's workers.
//!
//! It reads a file, or watches a running job, indexes what it read and answers questions about it. Each worker serves one
//! file or one session, so that closing it ends whatever it is doing and frees all of its memory. Page and engine
//! exchange the messages of the crate `protocol` and nothing else.
//!
//! The page is compiled for size, the engine for speed: gigabytes go through it.
#![allow(
    unreachable_pub,
    reason = "nothing but the entry leaves this crate: `pub` means for the other modules, and the compiler still finds \
              what none of them uses"
)]

mod entry;
mod fetch;
mod identity;
mod live;
mod pack;
mod ranges;
mod reader;
mod stages;
mod warm;

use wasm_bindgen::prelude::wasm_bindgen;

/// Serves one file or one session. Called once in each worker, by worker.js.
#[wasm_bindgen]
pub fn start_worker() {
    entry::start();
}
