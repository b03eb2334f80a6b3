//! Sizes and places that only the program knows. The page's content security policy forbids style attributes in
//! markup, so they are set on the element itself.

use shared::decimal::Decimal;
use web_sys::HtmlElement;
use yew::NodeRef;

/// Sets a style property of the element behind a reference; nothing happens while there is none.
pub fn set_style(node: &NodeRef, property: &str, value: &str) {
    if let Some(element) = node.cast::<HtmlElement>() {
        // Only an unknown property can fail, and those used here are all known.
        let _ = element.style().set_property(property, value);
    }
}

/// A length in pixels, as CSS writes it.
pub fn pixels(length: f64) -> String {
    format!("{}px", Decimal::of(length, 2).shortest())
}
