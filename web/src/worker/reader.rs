//! A file's bytes, slice by slice: the next slice is already being read while the last one is worked on.

use js_sys::{ArrayBuffer, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::Blob;

/// Bytes of one slice. Large enough that the wait for each is lost in its work, small enough that progress moves and
/// a few of them are nothing beside the trace.
pub const SLICE_BYTES: u32 = 4 << 20;

/// The slices of a file, in order.
pub struct Slices {
    file: Blob,
    size: f64,
    /// Where the slice after `coming` begins.
    next: f64,
    coming: Option<JsFuture<JsValue>>,
}

impl Slices {
    /// Begins to read.
    pub fn new(file: Blob) -> Self {
        let size = file.size();
        let mut slices = Self { file, size, next: 0.0, coming: None };
        slices.coming = slices.request();
        slices
    }

    /// The file's length in bytes.
    pub fn size(&self) -> u64 {
        self.size as u64
    }

    /// Puts the next slice into `buffer`, and says whether there was one. The error is the browser's.
    pub async fn next(&mut self, buffer: &mut Vec<u8>) -> Result<bool, String> {
        let Some(coming) = self.coming.take() else { return Ok(false) };
        let slice = coming.await.map_err(|error| text(&error))?;
        self.coming = self.request();
        let bytes = Uint8Array::new(slice.unchecked_ref::<ArrayBuffer>());
        buffer.resize(bytes.length() as usize, 0);
        bytes.copy_to(buffer);
        Ok(true)
    }

    fn request(&mut self) -> Option<JsFuture<JsValue>> {
        if self.next >= self.size {
            return None;
        }
        let end = (self.next + f64::from(SLICE_BYTES)).min(self.size);
        let slice = self.file.slice_with_f64_and_f64(self.next, end).ok()?;
        self.next = end;
        Some(JsFuture::from(slice.array_buffer().unchecked_into::<js_sys::Promise<JsValue>>()))
    }
}

fn text(error: &JsValue) -> String {
    error.dyn_ref::<js_sys::Error>().map_or_else(|| format!("{error:?}"), |error| String::from(error.message()))
}
