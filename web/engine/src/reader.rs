//! A file's bytes as they come: the browser goes on reading while the last ones are worked on.

use js_sys::{Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, ReadableStream, ReadableStreamByobReader, ReadableStreamDefaultReader, ReadableStreamGetReaderOptions,
    ReadableStreamReaderMode,
};

/// The most bytes taken at once. Large enough that the wait for each is lost in its work, small enough that progress
/// moves.
const MOST_BYTES: u32 = 4 << 20;

/// The bytes of a file, from its start to its end. A stream is twice as fast here as slices that are asked for one by
/// one, because the browser fills its pipe all the while.
pub struct Bytes {
    size: u64,
    reader: Reader,
}

enum Reader {
    /// Fills a buffer that goes back and forth, whatever comes in. Best, and not in every browser.
    Fills(ReadableStreamByobReader, Uint8Array),
    /// Takes chunks as the browser cuts them.
    Takes(ReadableStreamDefaultReader),
}

impl Bytes {
    /// Begins to read a file.
    pub fn of(file: &Blob) -> Self {
        Self::of_stream(&file.stream(), file.size() as u64)
    }

    /// Begins to read a stream of so many bytes; of 0 where that is not known.
    pub fn of_stream(stream: &ReadableStream, size: u64) -> Self {
        let options = ReadableStreamGetReaderOptions::new();
        options.set_mode(ReadableStreamReaderMode::Byob);
        // A browser without such readers throws, which the call's signature doesn't say.
        let fills = Reflect::get(stream, &"getReader".into())
            .and_then(|get| get.unchecked_into::<js_sys::Function>().call1(stream, &options));
        let reader = match fills {
            Ok(reader) => Reader::Fills(reader.unchecked_into(), Uint8Array::new_with_length(MOST_BYTES)),
            Err(_) => Reader::Takes(stream.get_reader().unchecked_into()),
        };
        Self { size, reader }
    }

    /// The length; 0 where it is not known.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Puts the next bytes into `buffer`, and says whether there were any. The error is the browser's.
    pub async fn next(&mut self, buffer: &mut Vec<u8>) -> Result<bool, String> {
        let coming = match &self.reader {
            Reader::Fills(reader, view) => reader.read_with_array_buffer_view(view),
            Reader::Takes(reader) => reader.read(),
        };
        let result = JsFuture::from(coming.unchecked_into::<js_sys::Promise<JsValue>>()).await.map_err(|e| text(&e))?;
        let value = Reflect::get(&result, &"value".into()).unwrap_or_default();
        let Some(bytes) = value.dyn_ref::<Uint8Array>().filter(|bytes| bytes.length() > 0) else { return Ok(false) };
        buffer.resize(bytes.length() as usize, 0);
        bytes.copy_to(buffer);
        if let Reader::Fills(_, view) = &mut self.reader {
            *view = Uint8Array::new(&bytes.buffer());
        }
        Ok(true)
    }
}

fn text(error: &JsValue) -> String {
    error.dyn_ref::<js_sys::Error>().map_or_else(|| format!("{error:?}"), |error| String::from(error.message()))
}
