//! Running in, before the first file comes. A browser compiles WebAssembly quickly at first and well only once it has
//! seen what runs often: without this, the first file spends its first tenths of a second in the quick code.

use std::cell::Cell;

use js_sys::{ArrayBuffer, Uint8Array};
use shared::import::Importer;
use shared::limits::ImportLimits;
use shared::query::{Axis, ColorBy, Query, TimelineQuery, Window};
use shared::session::Session;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{DedicatedWorkerGlobalScope, Response};

/// What is run over: the server's sample. Where there is none, the first file is a little slower.
const SAMPLE: &str = "./sample.pickle";
/// So much of it: some hundredths of a second.
const MOST_BYTES: u32 = 2 << 20;

thread_local! {
    static IS_WANTED: Cell<bool> = const { Cell::new(true) };
}

/// There is a file to read now: nothing may stand in its way.
pub(super) fn stop() {
    IS_WANTED.set(false);
}

/// Reads and draws a part of the sample, and forgets it.
pub(super) async fn run_in(scope: DedicatedWorkerGlobalScope) {
    // Whatever fails here fails for nobody.
    if let Ok(bytes) = fetch(&scope).await
        && IS_WANTED.get()
    {
        let _ = open_and_draw(&bytes);
    }
}

async fn fetch(scope: &DedicatedWorkerGlobalScope) -> Result<Vec<u8>, JsValue> {
    let response: Response = JsFuture::from(scope.fetch_with_str(SAMPLE)).await?.unchecked_into();
    if !response.ok() {
        return Err(response.status().into());
    }
    let buffer: ArrayBuffer = JsFuture::from(response.array_buffer()?).await?.unchecked_into();
    Ok(Uint8Array::new_with_byte_offset_and_length(&buffer, 0, buffer.byte_length().min(MOST_BYTES)).to_vec())
}

fn open_and_draw(bytes: &[u8]) -> Option<()> {
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(bytes).ok()?;
    let mut session = Session::build(importer.finish().ok()?, &mut |_| {});
    let device = session.summary().devices.first()?;
    let (axis, columns, window) = (Axis::Event, 1_000, device.event);
    let bytes = Window { start: 0.0, end: device.peak_reserved as f64 };
    session.answer(0, &Query::Overview { axis, columns });
    let (color_by, rows) = (ColorBy::Site, 500);
    let query = TimelineQuery { axis, window, columns, bytes, rows, color_by, filter: Vec::new(), highlight: None };
    session.answer(0, &Query::Timeline(query));
    Some(())
}
