//! Where the page runs.

use web_sys::UrlSearchParams;

use crate::browser::{document, window};
use crate::model::Place;

/// The element that only a page with everything inside has: its workers' script.
const INSIDE: &str = "vramscope-worker";
/// The parameter of the address with which another site opens or frames the page.
const EMBED: &str = "embed";

/// Returns where the page runs.
pub fn place() -> Place {
    if document().get_element_by_id(INSIDE).is_some() {
        return Place::OneFile;
    }
    if parameters().is_some_and(|parameters| parameters.has(EMBED)) { Place::Embedded } else { Place::Server }
}

/// Returns the parameters of the page's address.
pub(super) fn parameters() -> Option<UrlSearchParams> {
    UrlSearchParams::new_with_str(&window().location().search().ok()?).ok()
}
