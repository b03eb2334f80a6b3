//! A file's bytes as a stream: the browser reads ahead while the last bytes are being parsed.

use js_sys::{Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, ReadableStream, ReadableStreamByobReader, ReadableStreamDefaultReader, ReadableStreamGetReaderOptions,
    ReadableStreamReaderMode,
};

/// The maximum number of bytes read at once: large enough that waiting for each piece takes little time compared with
/// parsing it, small enough that progress moves.
const MOST_BYTES: u32 = 4 << 20;

/// The bytes of a file, from its start to its end. A stream is twice as fast as slices that are requested one by one,
/// because the browser fills its pipe all the while.
pub struct Bytes {
    size: u64,
    reader: Reader,
}

enum Reader {
    /// Fills a buffer that goes back and forth. The fastest, but not in every browser.
    Byob(ReadableStreamByobReader, Uint8Array),
    /// Returns chunks as the browser cuts them.
    Default(ReadableStreamDefaultReader),
}

impl Bytes {
    /// Opens a file.
    pub fn of(file: &Blob) -> Self {
        Self::of_stream(&file.stream(), file.size() as u64)
    }

    /// Opens a stream of `size` bytes; 0 if the size is not known.
    pub fn of_stream(stream: &ReadableStream, size: u64) -> Self {
        let options = ReadableStreamGetReaderOptions::new();
        options.set_mode(ReadableStreamReaderMode::Byob);
        // A browser without such readers throws, which the signature in `web-sys` doesn't say.
        let byob = Reflect::get(stream, &"getReader".into())
            .and_then(|get| get.unchecked_into::<js_sys::Function>().call1(stream, &options));
        let reader = match byob {
            Ok(reader) => Reader::Byob(reader.unchecked_into(), Uint8Array::new_with_length(MOST_BYTES)),
            Err(_) => Reader::Default(stream.get_reader().unchecked_into()),
        };
        Self { size, reader }
    }

    /// Returns the length in bytes; 0 if it is not known.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads the next bytes into `buffer`. Returns whether there were any. The error is the browser's.
    pub async fn next(&mut self, buffer: &mut Vec<u8>) -> Result<bool, String> {
        let read = match &self.reader {
            Reader::Byob(reader, view) => reader.read_with_array_buffer_view(view),
            Reader::Default(reader) => reader.read(),
        };
        let result = JsFuture::from(read.unchecked_into::<js_sys::Promise<JsValue>>()).await.map_err(|e| text(&e))?;
        let value = Reflect::get(&result, &"value".into()).unwrap_or_default();
        let Some(bytes) = value.dyn_ref::<Uint8Array>().filter(|bytes| bytes.length() > 0) else { return Ok(false) };
        buffer.resize(bytes.length() as usize, 0);
        bytes.copy_to(buffer);
        if let Reader::Byob(_, view) = &mut self.reader {
            *view = Uint8Array::new(&bytes.buffer());
        }
        Ok(true)
    }
}

fn text(error: &JsValue) -> String {
    error.dyn_ref::<js_sys::Error>().map_or_else(|| format!("{error:?}"), |error| String::from(error.message()))
}
