//! Saves a copy: as a recording, or as a page of its own that opens without a network.

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, BlobPropertyBag, FileReader};

use super::choices::file_name;
use crate::source::server;

/// The line of the page's template that the trace replaces.
const MARKER: &str = "<!--vramscope-trace-->";
/// Bytes that are written as Base64 at once: a multiple of three, so that the pieces fit together.
const PIECE_BYTES: f64 = 12.0 * 1024.0 * 1024.0;

/// Returns whether a trace can be put into a page.
pub fn is_template(page: &str) -> bool {
    page.contains(MARKER)
}

/// Saves a copy as a recording. Returns a sentence, as an error if it was not saved.
pub fn save_file(copy: &Blob, name: &str) -> Result<String, String> {
    let file = file_name(name, ".vramscope");
    server::save(copy, &file).map_err(|failure| failure.sentence())?;
    Ok(format!("Your browser saves the copy as {file}."))
}

/// Saves a copy inside a page that opens with `view`. Returns a sentence, as an error if it was not saved.
pub async fn save_page(template: &str, copy: &Blob, name: &str, view: &str) -> Result<String, String> {
    let refused = |_| "The browser has no room for the page. Save the trace as a file instead.".to_owned();
    let (before, after) = template.split_once(MARKER).unwrap_or((template, ""));
    let parts = Array::new();
    let push = |text: &str| parts.push(&text.into());
    push(before);
    // Without an ending: it is the page's title.
    let (name_inside, view) = (attribute(&file_name(name, "")), attribute(view));
    push(&format!(
        "<script type=\"application/octet-stream\" id=\"vramscope-trace\" data-name=\"{name_inside}\" data-view=\"{view}\">"
    ));
    let mut from = 0.0;
    while from < copy.size() {
        let piece = copy.slice_with_f64_and_f64(from, (from + PIECE_BYTES).min(copy.size())).map_err(refused)?;
        push(&base64(&piece).await.map_err(refused)?);
        from += PIECE_BYTES;
    }
    push("</script>");
    push(after);
    let kind = BlobPropertyBag::new();
    kind.set_type("text/html");
    let page = Blob::new_with_str_sequence_and_options(&parts, &kind).map_err(refused)?;
    let file = file_name(name, ".html");
    server::save(&page, &file).map_err(|failure| failure.sentence())?;
    Ok(format!("Your browser saves the copy as {file}. It opens with the current view."))
}

/// Returns a text as the value of an attribute in quotation marks.
fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
    out
}

/// Returns bytes as Base64. The browser writes it faster than a loop would.
async fn base64(bytes: &Blob) -> Result<String, JsValue> {
    let reader = FileReader::new()?;
    let read = Promise::new(&mut |resolve, _| reader.set_onloadend(Some(&resolve)));
    reader.read_as_data_url(bytes)?;
    JsFuture::from(read).await?;
    let url = reader.result()?.as_string().ok_or(JsValue::NULL)?;
    url.split_once(',').map(|(_, text)| text.to_owned()).ok_or(JsValue::NULL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_inside_its_attribute() {
        assert_eq!(attribute("a\"><script>&"), "a&quot;&gt;&lt;script&gt;&amp;");
    }
}
