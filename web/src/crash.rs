//! The page's error boundary: an internal error shows a message with a way to recover, not a frozen page.

use crate::browser::document;

/// Shows the hidden message of index.html when the page panics. boot.js does the same for other errors.
pub fn watch_page() {
    std::panic::set_hook(Box::new(|info| {
        web_sys::console::error_1(&info.to_string().into());
        let Some(notice) = document().get_element_by_id("crash") else { return };
        let _ = notice.remove_attribute("hidden");
        if let Some(detail) = document().get_element_by_id("crash-detail") {
            detail.set_text_content(Some(&info.to_string()));
        }
    }));
}
