//! Assembles the page as one file, line by line from `index.html`, in which each element that names another file has a
//! line of its own.

use std::borrow::Cow;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::bundle::bundle;
use super::{MARKER, base64};
use crate::assets::Asset;

/// Returns a file of the page by its path.
pub(super) type Find<'a> = &'a dyn Fn(&str) -> Option<&'a Asset>;

/// Assembles the page. The error is a sentence.
pub(super) fn assemble(find: Find<'_>) -> Result<String, String> {
    let mut page = Page { find, head: String::new(), body: String::new(), scripts: Vec::new(), styles: Vec::new() };
    let index = page.text("index.html")?;
    let (head, body) = index.split_once("<body>").ok_or("the page has no body")?;
    for line in head.lines() {
        page.line(line)?;
    }
    let (start, head) = page.head.split_once(CHARSET).ok_or("the page does not tell its encoding")?;
    let (body, end) = body.split_once("</body>").ok_or("the page's body has no end")?;
    let whole = format!(
        "{start}{CHARSET}\n    <meta http-equiv=\"Content-Security-Policy\" content=\"{}\" />{head}<body>{body}{MARKER}\n\
         {}  </body>{end}",
        page.policy(),
        page.body
    );
    // The person who saves a trace relies on its only place.
    if whole.matches(MARKER).count() != 1 {
        return Err("a script of the page names the place of the trace".to_owned());
    }
    Ok(whole)
}

/// The element that the policy follows, as it must stand before everything that it is for.
const CHARSET: &str = "<meta charset=\"utf-8\" />";

/// The page as far as it is assembled.
struct Page<'a> {
    find: Find<'a>,
    head: String,
    /// What follows the place of the trace: the data blocks.
    body: String,
    /// The hashes of scripts and of styles, as the policy has them.
    scripts: Vec<String>,
    styles: Vec<String>,
}

impl Page<'_> {
    /// Takes over a line of the head, with the file that it names inside.
    fn line(&mut self, line: &str) -> Result<(), String> {
        let tag = line.trim();
        let is = |start: &str| tag.starts_with(start);
        let path = quoted(tag, "href=\"").or_else(|| quoted(tag, "src=\""));
        let inside = match path {
            None => line.to_owned(),
            // Both ask for a file earlier than its first use.
            Some(_) if is("<link rel=\"modulepreload\"") || is("<link rel=\"preload\"") => return Ok(()),
            Some(path) if is("<link rel=\"stylesheet\"") => {
                let style = self.text(path)?;
                self.styles.push(hash(&style));
                format!("<style>{}</style>", harmless(&style, "</style")?)
            }
            Some(path) if is("<link rel=\"icon\"") => {
                let asset = self.asset(path)?;
                let data = base64::encode(&asset.plain());
                format!("    <link rel=\"icon\" href=\"data:{};base64,{data}\" />", asset.content_type)
            }
            Some(path) if is("<script src=") => {
                let script = self.text(path)?;
                self.scripts.push(hash(&script));
                format!("<script>{}</script>", harmless(&script, "</script")?)
            }
            Some(path) if is("<script type=\"module\" src=") => self.boot(path)?,
            Some(path) => return Err(format!("the page names {path}, and it is not known how to put that inside")),
        };
        self.head.push_str(&inside);
        self.head.push('\n');
        Ok(())
    }

    /// Returns the element of the script that starts the page, and adds the data blocks that it reads.
    fn boot(&mut self, path: &str) -> Result<String, String> {
        let boot = self.text(path)?;
        let script = bundle(&boot, &self.text(&named(&boot, "page-", ".js")?)?)?;
        for (id, start, glue) in [("worker", "worker-", "engine-"), ("rerun", "rerun-", "whatif-")] {
            let worker = self.text(&named(&boot, start, ".js")?)?;
            let worker = bundle(&worker, &self.text(&named(&worker, glue, ".js")?)?)?;
            self.block(id, worker.as_bytes());
        }
        for (id, start) in [("page", "page_bg-"), ("engine", "engine_bg-"), ("whatif", "whatif_bg-")] {
            let packed = packed(self.asset(&named(&boot, start, ".wasm")?)?);
            self.block(id, &packed);
        }
        // Only the page that users install has a second module.
        if let Ok(path) = named(&boot, "later_bg-", ".wasm") {
            let packed = packed(self.asset(&path)?);
            self.block("later", &packed);
        }
        self.scripts.push(hash(&script));
        Ok(format!("<script type=\"module\">{}</script>", harmless(&script, "</script")?))
    }

    /// Adds an element with data that no browser runs.
    fn block(&mut self, id: &str, data: &[u8]) {
        let data = base64::encode(data);
        self.body += &format!("<script type=\"application/octet-stream\" id=\"vramscope-{id}\">{data}</script>\n");
    }

    fn asset(&self, path: &str) -> Result<&Asset, String> {
        (self.find)(path).ok_or_else(|| format!("the page's file {path} is missing"))
    }

    fn text(&self, path: &str) -> Result<String, String> {
        let bytes = self.asset(path)?.plain().into_owned();
        String::from_utf8(bytes).map_err(|_| format!("the page's file {path} is no text"))
    }

    /// Returns the policy: it allows the scripts and styles that are inside, workers from what they make, and nothing else.
    /// Neither can a trace leave the page, nor anything come in.
    fn policy(&self) -> String {
        format!(
            "default-src 'none'; script-src {} 'wasm-unsafe-eval'; style-src {}; worker-src blob:; img-src data:; \
             connect-src 'none'; base-uri 'none'; form-action 'none'; object-src 'none'",
            self.scripts.join(" "),
            self.styles.join(" ")
        )
    }
}

/// Returns the value of an attribute.
fn quoted<'a>(tag: &'a str, start: &str) -> Option<&'a str> {
    tag.split_once(start)?.1.split('"').next()
}

/// Returns the file that a script names, by the start and the end of its name.
fn named(script: &str, start: &str, end: &str) -> Result<String, String> {
    let mut names = script.split('"').map(|part| part.trim_start_matches("./"));
    let name = names.find(|name| name.starts_with(start) && name.ends_with(end) && !name.contains('/'));
    name.map(str::to_owned).ok_or_else(|| format!("a script of the page names no file {start}…{end}"))
}

/// Returns the hash of an element's text, as a policy has it.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", base64::encode(&Sha256::digest(text.as_bytes())))
}

/// Returns a text that ends no element and opens no comment.
fn harmless<'a>(text: &'a str, end: &str) -> Result<&'a str, String> {
    let lower = text.to_ascii_lowercase();
    if lower.contains(end) || lower.contains("<!--") {
        return Err(format!("a script or style of the page contains {end} or <!--"));
    }
    Ok(text)
}

/// Returns a file in gzip, which every browser can unpack by itself.
fn packed(asset: &Asset) -> Cow<'static, [u8]> {
    asset.gzip.map_or_else(
        || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            // Writing to memory can't fail.
            let _ = encoder.write_all(&asset.plain());
            Cow::Owned(encoder.finish().unwrap_or_default())
        },
        Cow::Borrowed,
    )
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const INDEX: &str = r#"<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <link rel="icon" href="icon-0.svg" type="image/svg+xml" />
    <script src="theme-0.js"></script>
    <link rel="stylesheet" href="theme-0.css" />
    <link rel="modulepreload" href="page-0.js" />
    <link rel="preload" href="page_bg-0.wasm" as="fetch" />
    <script type="module" src="boot-0.js"></script>
  </head>
  <body>
    <div id="app"></div>
  </body>
</html>
"#;
    const BOOT: &str = r#"import init, { start_page } from "./page-0.js";
const files = ["./engine_bg-0.wasm", "./worker-0.js", "./page_bg-0.wasm", "./rerun-0.js", "./whatif_bg-0.wasm"];
"#;
    const GLUE: &str = "export function start_page() {}\nexport { initSync, __wbg_init as default };\n";

    fn asset(path: &'static str, text: &'static str) -> Asset {
        let plain = Some(text.as_bytes());
        let content_type = if path.ends_with("svg") { "image/svg+xml" } else { "text/plain" };
        Asset { path, content_type, hash: "0", is_immutable: true, plain, brotli: None, gzip: None }
    }

    fn assets() -> Vec<Asset> {
        vec![
            asset("index.html", INDEX),
            asset("icon-0.svg", "<svg/>"),
            asset("theme-0.js", "let theme = 1;"),
            asset("theme-0.css", "a { b: c }"),
            asset("boot-0.js", BOOT),
            asset("page-0.js", GLUE),
            asset("page_bg-0.wasm", "the page's module"),
            asset("worker-0.js", "import init, { start_worker } from \"./engine-0.js\";\n"),
            asset("engine-0.js", "export function start_worker() {}\n"),
            asset("engine_bg-0.wasm", "the engine's module"),
            asset("rerun-0.js", "import init, { start_worker } from \"./whatif-0.js\";\n"),
            asset("whatif-0.js", "export function start_worker() {}\n"),
            asset("whatif_bg-0.wasm", "the what-if module"),
        ]
    }

    fn assembled(assets: &[Asset]) -> Result<String, String> {
        assemble(&|path| assets.iter().find(|asset| asset.path == path))
    }

    /// Returns the texts of the elements that begin with `tag`.
    fn inside<'a>(page: &'a str, tag: &str, end: &str) -> Vec<&'a str> {
        page.split(tag).skip(1).map(|rest| rest.split(end).next().unwrap()).collect()
    }

    #[test]
    fn the_policy_allows_exactly_what_is_inside() {
        let page = assembled(&assets()).unwrap();
        let policy = quoted(&page, "content=\"").unwrap();
        assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'") && !policy.contains("'self'"));
        for (name, tags, end) in [
            ("script-src", &["<script>", "<script type=\"module\">"][..], "</script>"),
            ("style-src", &["<style>"], "</style>"),
        ] {
            let directive = policy.split("; ").find(|part| part.starts_with(name)).unwrap();
            let allowed: Vec<&str> = directive.split(' ').filter(|part| part.starts_with("'sha256-")).collect();
            let found: Vec<String> = tags.iter().flat_map(|tag| inside(&page, tag, end)).map(hash).collect();
            assert!(!found.is_empty());
            assert_eq!(allowed, found, "{name}");
        }
        // The policy stands before everything that it is for.
        assert!(page.find("http-equiv").unwrap() < page.find("<link").unwrap().min(page.find("<script").unwrap()));
        for part in ["default-src 'none'", "connect-src 'none'", "worker-src blob:", "base-uri 'none'"] {
            assert!(policy.split("; ").any(|have| have == part), "{part} is not in {policy}");
        }
    }

    #[test]
    fn the_page_needs_no_other_file() {
        let page = assembled(&assets()).unwrap();
        assert_eq!(page.matches(MARKER).count(), 1);
        for start in ["src=\"", "rel=\"stylesheet\"", "preload"] {
            assert!(!page.contains(start), "{start} in {page}");
        }
        assert!(page.contains("href=\"data:image/svg+xml;base64,PHN2Zy8+\""));
        assert_eq!(page.matches(" href=").count(), 1, "{page}");
        // The modules are packed, and stay as they are.
        let block = page.split("id=\"vramscope-engine\">").nth(1).unwrap().split('<').next().unwrap();
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(b"the engine's module").unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(block, base64::encode(&packed));
        let mut plain = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut plain).unwrap();
        assert_eq!(plain, "the engine's module");
    }

    #[test]
    fn what_can_not_be_inside_is_refused_with_a_reason() {
        for (path, text, reason) in [
            ("theme-0.js", "'</SCRIPT>'", "</script"),
            ("theme-0.js", "'<!--vramscope-trace-->'", "<!--"),
            ("theme-0.css", "a{}</style>", "</style"),
            ("boot-0.js", "start(\"./page-0.js\");", "imports nothing"),
            ("worker-0.js", "import init, { start_worker } from \"./other.js\";\n", "engine-"),
            (
                "index.html",
                "<meta charset=\"utf-8\" />\n<link rel=\"manifest\" href=\"x\" />\n<body></body>",
                "names x",
            ),
            (
                "index.html",
                "<meta charset=\"utf-8\" />\n<script src=\"gone.js\"></script>\n<body></body>",
                "gone.js is missing",
            ),
        ] {
            let mut assets = assets();
            assets.retain(|asset| asset.path != path);
            assets.push(asset(path, text));
            let error = assembled(&assets).unwrap_err();
            assert!(error.contains(reason), "{path} {text}: {error}");
        }
    }
}
