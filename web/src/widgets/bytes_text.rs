//! A byte count: short on the screen, exact on hover and on copy.

use trace::units::Bytes;
use wasm_bindgen::JsCast;
use web_sys::{ClipboardEvent, Element};
use yew::prelude::*;

/// Renders `61.2 GiB` with `65,712,455,680 bytes` on hover.
pub fn bytes_text(bytes: u64) -> Html {
    bytes_like(bytes, bytes)
}

/// Renders a number as it stands in a column, in the unit of the column's smallest number.
pub fn bytes_like(bytes: u64, least: u64) -> Html {
    let (bytes, exact) = (Bytes(bytes), bytes.to_string());
    html! { <span class="bytes" title={hint(&bytes.exact())} data-bytes={exact}>{ bytes.like(Bytes(least)) }</span> }
}

/// Renders a change: `+61.2 GiB`, `−340 MiB`, with the exact count on hover.
pub fn change_text(bytes: i64) -> Html {
    let size = Bytes(bytes.unsigned_abs());
    let sign = match bytes {
        0 => "",
        1.. => "+",
        _ => "−",
    };
    html! { <span class="bytes" title={hint(&[sign, &size.exact()].concat())} data-bytes={bytes.to_string()}>{ sign }{ size.to_string() }</span> }
}

/// Returns the tooltip of a number: the exact count, and that copying copies it.
fn hint(exact: &str) -> String {
    [exact, ". Copying the number copies this exact count."].concat()
}

/// Returns a copy handler for a region with [`bytes_text`]: if exactly one number is selected, its exact count is
/// copied.
pub fn copy_exact() -> Callback<Event> {
    Callback::from(|event: Event| {
        let Some(selection) = web_sys::window().and_then(|w| w.get_selection().ok().flatten()) else { return };
        let Some(node) = selection.anchor_node() else { return };
        // The selection starts in the number's text or in the element around it.
        let Some(anchor) = node.dyn_ref::<Element>().cloned().or_else(|| node.parent_element()) else { return };
        let (text, shown) = (String::from(selection.to_string()), anchor.text_content().unwrap_or_default());
        if text.trim() == shown.trim()
            && let Some(bytes) = exact_of(&anchor)
            && let Some(data) = event.dyn_ref::<ClipboardEvent>().and_then(ClipboardEvent::clipboard_data)
            && data.set_data("text/plain", &bytes).is_ok()
        {
            event.prevent_default();
        }
    })
}

fn exact_of(element: &Element) -> Option<String> {
    element.get_attribute("data-bytes")
}
