//! The identity of a file: the hash of its bytes, which links carry.
//!
//! A link that waits for a file needs its identity before the view is laid over the data, so the bytes are hashed while
//! they are read. Otherwise nothing waits for it: once the first picture has been drawn, the file is read a second time,
//! in slices, whenever no question has been asked for a while.

use std::cell::{Cell, RefCell};

use js_sys::{ArrayBuffer, Promise, Uint8Array};
use protocol::message::FromWorker;
use query::link::FileHash;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::File;

use crate::entry::{now, post, scope};

/// Bytes of a slice: hashed in a few milliseconds, which is how long a question waits at most.
const SLICE_BYTES: f64 = (2 << 20) as f64;

/// Milliseconds without a question before the next slice is read.
const QUIET_MS: f64 = 100.0;

thread_local! {
    /// Whether the identity was asked for before the file came.
    static IS_AWAITED: Cell<bool> = const { Cell::new(false) };
    /// The file, once it has been read without being hashed.
    static FILE: RefCell<Option<File>> = const { RefCell::new(None) };
    /// When the last question was asked.
    static ASKED_MS: Cell<f64> = const { Cell::new(0.0) };
}

/// The hash of bytes, in the order in which they are added.
#[derive(Default)]
pub struct Hashing(blake3::Hasher);

impl Hashing {
    /// Starts hashing if the identity was asked for already.
    pub fn if_awaited() -> Option<Self> {
        IS_AWAITED.get().then(Self::default)
    }

    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the identity of a file with all bytes so far.
    pub fn finish(&self) -> FileHash {
        FileHash::of_digest(self.0.finalize().as_bytes())
    }
}

/// Keeps a file that has been read without being hashed.
pub fn keep(file: File) {
    FILE.set(Some(file));
}

/// Notes that a question was asked.
pub fn asked() {
    ASKED_MS.set(now());
}

/// Finds the identity: of the next file while it is read, or of the file that has been read.
pub fn find() {
    match FILE.take() {
        Some(file) => spawn_local(async move {
            // A file that can't be read any more has no identity, and the links to it name it only.
            if let Ok(hash) = in_slices(&file).await {
                post(&FromWorker::Hashed { hash });
            }
        }),
        None => IS_AWAITED.set(true),
    }
}

async fn in_slices(file: &File) -> Result<FileHash, JsValue> {
    let (mut hashing, mut from, size) = (Hashing::default(), 0.0, file.size());
    while from < size {
        loop {
            let quiet = now() - ASKED_MS.get();
            if quiet >= QUIET_MS {
                break;
            }
            sleep(QUIET_MS - quiet).await?;
        }
        let to = (from + SLICE_BYTES).min(size);
        let buffer = JsFuture::from(file.slice_with_f64_and_f64(from, to)?.array_buffer()).await?;
        hashing.add(&Uint8Array::new(buffer.unchecked_ref::<ArrayBuffer>()).to_vec());
        from = to;
    }
    Ok(hashing.finish())
}

async fn sleep(milliseconds: f64) -> Result<(), JsValue> {
    let promise = Promise::new(&mut |resolve, _| {
        let after = milliseconds.ceil() as i32;
        // It fails only for a worker that ends, where nothing waits any more.
        let _ = scope().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, after);
    });
    JsFuture::from(promise).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_the_first_half_of_the_blake3_hash() {
        // The first test vector of BLAKE3 is the hash of no bytes.
        assert_eq!(Hashing::default().finish().to_string(), "af1349b9f5f9a1a6a0404dea36dcc949");
        let bytes: Vec<u8> = (0..251).cycle().take(1 << 16).collect();
        let mut in_pieces = Hashing::default();
        bytes.chunks(1_000).for_each(|piece| in_pieces.add(piece));
        let mut at_once = Hashing::default();
        at_once.add(&bytes);
        assert_eq!(in_pieces.finish(), at_once.finish());
        assert_ne!(at_once.finish(), Hashing::default().finish());
    }
}
