//! One HTML file that holds the page and a trace, and that a browser opens from disk without a network.
//!
//! The file is assembled from the files of the page that the program carries. Everything is inside: scripts and styles as
//! text, both WebAssembly modules, the workers' script and the trace as base64 in data blocks, which no browser runs.
//! A policy in the file allows exactly these scripts, by their hashes, and no connection at all.

mod base64;
mod bundle;
mod template;

use std::io::{self, Write};
use std::sync::OnceLock;

use trace::text::escaped;

use crate::assets;

/// Stands in the template where the trace belongs: once, outside of every script. The page's own "Save as web page" puts
/// the element there that [`write()`] does.
pub(crate) const MARKER: &str = "<!--vramscope-trace-->";

/// Bytes of a trace that are encoded at once. A multiple of three, so that base64 pads at the end only.
const PIECE: usize = 3 << 16;

/// Returns the page without a trace. The error is a sentence.
pub(crate) fn template() -> Result<&'static str, &'static str> {
    /// Assembled at the first request; it is always the same.
    static TEMPLATE: OnceLock<Result<String, String>> = OnceLock::new();
    if !assets::has_page() {
        return Err("this build of Vramscope has no page. Build it without VRAMSCOPE_PAGE=skip: cargo build --release");
    }
    TEMPLATE.get_or_init(|| template::assemble(&|path| assets::find(path))).as_deref().map_err(String::as_str)
}

/// Writes a page with a recording inside. `name` is what the page shows as the name of the file.
pub(crate) fn write(template: &str, name: &str, recording: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let (before, after) = template.split_once(MARKER).unwrap_or((template, ""));
    out.write_all(before.as_bytes())?;
    write!(out, "<script type=\"application/octet-stream\" id=\"vramscope-trace\" data-name=\"{}\">", attribute(name))?;
    for piece in recording.chunks(PIECE) {
        out.write_all(base64::encode(piece).as_bytes())?;
    }
    out.write_all(b"</script>")?;
    out.write_all(after.as_bytes())
}

/// Returns a text as the value of an attribute in double quotes, in one line and with its hidden characters shown.
fn attribute(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for c in escaped(text).chars() {
        match c {
            '&' => value.push_str("&amp;"),
            '"' => value.push_str("&quot;"),
            '<' => value.push_str("&lt;"),
            '>' => value.push_str("&gt;"),
            c => value.push(c),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(name: &str, recording: &[u8]) -> String {
        let mut out = Vec::new();
        write(&format!("<html>{MARKER}</html>"), name, recording, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_trace_takes_the_place_of_the_marker() {
        let want = "<html><script type=\"application/octet-stream\" id=\"vramscope-trace\" \
                    data-name=\"a.vramscope\">Zm9vYg==</script></html>";
        assert_eq!(filled("a.vramscope", b"foob"), want);
    }

    #[test]
    fn pieces_join_to_one_text() {
        let recording: Vec<u8> = (0..2 * PIECE + 5).map(|i| (i % 251) as u8).collect();
        assert!(filled("a", &recording).contains(&format!(">{}</script>", base64::encode(&recording))));
    }

    #[test]
    fn neither_name_nor_trace_becomes_html() {
        let hostile = "\"><script>alert(1)</script><!--vramscope-trace--><img src=x onerror='x()'>&\0\n";
        let page = filled(hostile, b"</script><script>alert(2)</script>");
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert_eq!(page.matches("</script").count(), 1, "{page}");
        assert!(!page.contains("<img") && !page.contains("<!--"), "{page}");
        let value = page.split("data-name=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert_eq!(
            value,
            "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;!--vramscope-trace--&gt;&lt;img src=x \
             onerror='x()'&gt;&amp;\\u{0}\\u{a}"
        );
    }
}
