//! Runs under other settings, opened as files of their own.

use js_sys::Array;
use web_sys::File;
use yew::Callback;

use crate::hooks::ModelHandle;
use crate::worker::client::Copied;

/// How the name of a recording ends.
const ENDING: &str = ".vramscope";

/// Opens a what-if run of the current file as a file of its own: every view shows it as it shows a recording. `settings` is
/// what its settings are called.
pub fn open_run(model: &ModelHandle, run: u32, settings: &str, stopped_at: Option<u32>) {
    let now = model.now();
    let (Some(key), Some(file)) = (now.current, now.file()) else { return };
    let device = now.view.device;
    let until = stopped_at.map(|event| format!(", until event {}", u64::from(event) + 1)).unwrap_or_default();
    let name = format!("{} with {settings}{until}", file.name.strip_suffix(ENDING).unwrap_or(&file.name));
    let handle = model.clone();
    let on_events = Callback::from(move |events| {
        let (model, title) = (handle.clone(), format!("{name}{ENDING}"));
        let on_copy = Callback::from(move |copied| {
            if let Copied::Packed(blob) = copied
                // Fails only if the browser has no room for it.
                && let Ok(file) = File::new_with_blob_sequence(&Array::of1(&blob), &title)
            {
                super::open(&model, [file]);
            }
        });
        handle.workers().record(key, (device, name.clone()), &events, on_copy);
    });
    model.workers().desks().trace(key, run, on_events);
}
