//! Sizes and positions that are known at run time only. The page's content security policy forbids style attributes in
//! markup, so they are set on the element itself.

use trace::decimal::Decimal;
use web_sys::HtmlElement;
use yew::NodeRef;

/// Sets a style property of a referenced element, if it exists.
pub fn set_style(node: &NodeRef, property: &str, value: &str) {
    if let Some(element) = node.cast::<HtmlElement>() {
        // Fails for unknown properties only.
        let _ = element.style().set_property(property, value);
    }
}

/// Formats a length in pixels for CSS.
pub fn pixels(length: f64) -> String {
    format!("{}px", Decimal::of(length, 2).shortest())
}
