//! The server's sample.

use js_sys::Array;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, File, Response};

use crate::browser::window;
use crate::hooks::ModelHandle;
use crate::model::Action;

/// The sample's URL, relative to the page.
const PATH: &str = "./sample.pickle";
/// The sample's file name in the page.
const NAME: &str = "sample.pickle";

/// Fetches the sample and opens it like any other file.
pub fn open_sample(model: &ModelHandle) {
    let model = model.clone();
    spawn_local(async move {
        match fetch().await {
            Ok(file) => super::open(&model, [file]),
            Err(_) => model.dispatch(Action::Notify(
                "The sample could not be fetched: the server doesn't answer. Is it still running?".to_owned(),
            )),
        }
    });
}

async fn fetch() -> Result<File, JsValue> {
    let response: Response = JsFuture::from(window().fetch_with_str(PATH)).await?.unchecked_into();
    if !response.ok() {
        return Err(response.status().into());
    }
    let blob: Blob = JsFuture::from(response.blob()?).await?.unchecked_into();
    File::new_with_blob_sequence(&Array::of1(&blob), NAME)
}
