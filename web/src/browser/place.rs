//! Where a pointer is.

use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::MouseEvent;

#[wasm_bindgen]
extern "C" {
    /// A mouse event, whose own coordinates are whole numbers.
    type Exact;
    #[wasm_bindgen(method, getter, js_name = clientX)]
    fn x(this: &Exact) -> f64;
    #[wasm_bindgen(method, getter, js_name = clientY)]
    fn y(this: &Exact) -> f64;
}

/// Returns the client coordinates of an event. On a dense screen they differ by less than a CSS pixel from one device pixel to
/// the next.
pub fn place(event: &MouseEvent) -> (f64, f64) {
    let exact: &Exact = event.unchecked_ref();
    (exact.x(), exact.y())
}
