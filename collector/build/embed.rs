//! The page's files as a table in the program: each with its type, its tag and its bytes, plain and compressed.

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Writes `assets.rs`, which the server includes: a slice of its `Asset`, sorted by path; empty without a page.
pub(crate) fn write(dist: Option<&Path>, out: &Path) -> Result<()> {
    let mut files = Vec::new();
    if let Some(dist) = dist {
        list(dist, dist, &mut files)?;
    }
    files.sort();

    let mut table = String::from("&[\n");
    for (path, file) in &files {
        let plain = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&plain)?;
        let packed = encoder.finish()?;
        // Pictures and the like come out no smaller: they are sent as they are.
        let gzip = if packed.len() < plain.len() {
            let name = out.join(format!("{}.gz", path.replace('/', "__")));
            fs::write(&name, &packed)?;
            format!("Some(include_bytes!({name:?}))")
        } else {
            "None".to_owned()
        };
        let mut hasher = DefaultHasher::new();
        hasher.write(&plain);
        writeln!(
            table,
            "    Asset {{ path: {path:?}, content_type: {:?}, tag: \"\\\"{:016x}\\\"\", plain: include_bytes!({file:?}), gzip: {gzip} }},",
            content_type(path)?,
            hasher.finish(),
        )?;
    }
    table.push_str("]\n");
    fs::write(out.join("assets.rs"), table).context("writing the table of assets")
}

/// All files below `folder`, with their path from `root` as an address has it.
fn list(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else {
            let parts: Vec<_> = path.strip_prefix(root)?.iter().map(|part| part.to_string_lossy()).collect();
            files.push((parts.join("/"), path));
        }
    }
    Ok(())
}

/// The type that a browser is told. A file of a kind not listed here is a mistake in the page's folder.
fn content_type(path: &str) -> Result<&'static str> {
    Ok(match path.rsplit('.').next().unwrap_or_default() {
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "ico" => "image/x-icon",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        "wasm" => "application/wasm",
        "webmanifest" => "application/manifest+json",
        "woff2" => "font/woff2",
        other => bail!("the page holds {path}, and files in .{other} have no content type here"),
    })
}
