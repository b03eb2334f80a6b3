//! Warming up before the first file. Browsers compile each function of WebAssembly quickly at first, and again with
//! optimizations once it runs often: without this, the first file spends its first tenths of a second in slow code.

use std::cell::Cell;

use js_sys::{ArrayBuffer, Uint8Array};
use shared::import::Importer;
use shared::limits::ImportLimits;
use shared::query::{Axis, ColorBy, Query, TimelineQuery, Window};
use shared::session::Session;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{DedicatedWorkerGlobalScope, Response};

/// The file to practise on: the server's sample. Without it, the first file is a little slower.
const SAMPLE: &str = "./sample.pickle";
/// How many bytes of it are read, which takes some hundredths of a second.
const MOST_BYTES: u32 = 2 << 20;

thread_local! {
    static IS_WANTED: Cell<bool> = const { Cell::new(true) };
}

/// Cancels warming up, because there is a file to read.
pub fn stop() {
    IS_WANTED.set(false);
}

/// Reads a part of the sample, asks what a page would ask first, and drops both.
pub async fn run(scope: DedicatedWorkerGlobalScope) {
    // A failure here changes nothing but speed.
    if let Ok(bytes) = fetch(&scope).await
        && IS_WANTED.get()
    {
        let _ = open_and_ask(&bytes);
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

fn open_and_ask(bytes: &[u8]) -> Option<()> {
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
