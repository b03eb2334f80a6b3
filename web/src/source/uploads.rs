//! The links that this browser has made, so that the user can extend and delete them later. Kept in local storage.

use js_sys::{Array, JSON};
use trace::order::SortFew;
use wasm_bindgen::JsValue;

use super::json::{Fields, Json, number_or_null};
use super::shares::Shared;
use crate::browser::window;

/// The key in local storage.
const KEY: &str = "vramscope-uploads";
/// The most links that are remembered. The oldest ones are forgotten first.
const MOST: usize = 500;

/// A link that this browser has made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Upload {
    /// Its token.
    pub token: String,
    /// The token that deletes it.
    pub delete_token: String,
    /// Its name.
    pub name: String,
    /// The size of its trace.
    pub bytes: u64,
    /// When it was made, in microseconds since the epoch.
    pub created_us: i64,
    /// When it expires; `None` for never.
    pub expires_us: Option<i64>,
    /// Whether it has a password.
    pub has_password: bool,
    /// The view that it was given out with, as a fragment; empty for links that were made before views were kept.
    pub view: String,
}

impl Upload {
    /// Creates the entry of a link that is given out with a view.
    pub fn of(shared: &Shared, delete_token: String, view: String) -> Self {
        let Shared { token, name, bytes, created_us, expires_us, has_password, .. } = shared.clone();
        Self { token, delete_token, name, bytes, created_us, expires_us, has_password, view }
    }
}

/// Returns the links, the newest first.
pub fn all() -> Vec<Upload> {
    let storage = window().local_storage().ok().flatten();
    let text = storage.and_then(|storage| storage.get_item(KEY).ok().flatten()).unwrap_or_default();
    let uploads = Json::parse(&text).map(|list| list.values()).unwrap_or_default();
    let mut uploads: Vec<Upload> = uploads
        .iter()
        .map(|upload| Upload {
            token: upload.text("token"),
            delete_token: upload.text("delete_token"),
            name: upload.text("name"),
            bytes: upload.number("bytes").unwrap_or(0.0) as u64,
            created_us: upload.number("created_us").unwrap_or(0.0) as i64,
            expires_us: upload.number("expires_us").map(|us| us as i64),
            has_password: upload.is("has_password"),
            view: upload.text("view"),
        })
        // Anything else on this host may have written there.
        .filter(|upload| !upload.token.is_empty() && upload.token.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .collect();
    uploads.sort_few_by_key(|upload| std::cmp::Reverse(upload.created_us));
    uploads.truncate(MOST);
    uploads
}

/// Remembers a link, or replaces what is known of it. Returns whether the browser could store it.
pub fn remember(upload: Upload) -> bool {
    let mut uploads = all();
    uploads.retain(|known| known.token != upload.token);
    uploads.insert(0, upload);
    write(&uploads)
}

/// Forgets a link.
pub fn forget(token: &str) {
    let mut uploads = all();
    uploads.retain(|known| known.token != token);
    // Fails only if nothing could be stored before either.
    write(&uploads);
}

fn write(uploads: &[Upload]) -> bool {
    let list: Array = uploads.iter().take(MOST).map(|upload| JsValue::from(entry(upload))).collect();
    let Ok(Some(storage)) = window().local_storage() else { return false };
    JSON::stringify(&list).is_ok_and(|text| storage.set_item(KEY, &String::from(text)).is_ok())
}

fn entry(upload: &Upload) -> Fields {
    Fields::default()
        .with("token", upload.token.as_str())
        .with("delete_token", upload.delete_token.as_str())
        .with("name", upload.name.as_str())
        .with("bytes", upload.bytes as f64)
        .with("created_us", upload.created_us as f64)
        .with("expires_us", number_or_null(upload.expires_us.map(|us| us as f64)))
        .with("has_password", upload.has_password)
        .with("view", upload.view.as_str())
}
