//! Texts of errors, which the page's server explains.

use std::cell::RefCell;

use trace::limits::PASTED_BYTES;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::File;

use crate::browser::after_next_frame;
use crate::hooks::ModelHandle;
use crate::model::{Action, Dialog};

thread_local! {
    /// The text that the dialog begins with.
    static GIVEN: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Opens the dialog with a text, and explains it.
pub(super) fn explain(model: &ModelHandle, text: String) {
    GIVEN.set(text);
    let open = {
        let model = model.clone();
        move || model.dispatch(Action::OpenDialog(Dialog::Explain))
    };
    match model.now().dialog {
        // With the text that it has it is another dialog.
        Some(Dialog::Explain) => {
            model.dispatch(Action::CloseDialog);
            after_next_frame(open);
        }
        _ => open(),
    }
}

/// Whether a file is a text, such as the log of a job.
pub(super) fn is_text(file: &File) -> bool {
    let name = file.name().to_ascii_lowercase();
    let is_log = [".log", ".txt", ".out", ".err"].iter().any(|end| name.ends_with(end));
    is_log || file.type_() == "text/plain"
}

/// Opens the dialog with the text of a file: with its end, where the last error stands.
pub(super) fn explain_file(model: &ModelHandle, file: &File) {
    let Ok(end) = file.slice_with_f64((file.size() - PASTED_BYTES as f64).max(0.0)) else { return };
    let model = model.clone();
    spawn_local(async move {
        let text = JsFuture::from(end.text()).await.ok();
        explain(&model, text.and_then(|text| text.as_string()).unwrap_or_default());
    });
}

/// Returns the text that the dialog begins with, once; empty if there is none.
pub fn take_text() -> String {
    GIVEN.take()
}
