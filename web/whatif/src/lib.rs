//! The what-if worker of Vramscope: the WebAssembly module that runs a device's requests under other settings.
//!
//! It is a module of its own, which the page loads when its tab is first used: it holds the allocator, and the engine has
//! no need of that. Each worker serves one device, so that ending it ends whatever it is doing.
//!
//! ```text
//! engine ─► requests ─► page ─► desk ─► whatif
//! ```
#![allow(
    unreachable_pub,
    reason = "nothing but the entry leaves this crate: `pub` means for the other modules, and the compiler still finds \
              what none of them uses"
)]

mod axis;
mod conditions;
mod curve;
mod desk;
mod entry;
mod search;

use wasm_bindgen::prelude::wasm_bindgen;

/// Serves one device. Called once in each worker, by whatif-worker.js.
#[wasm_bindgen]
pub fn start_worker() {
    entry::start();
}
