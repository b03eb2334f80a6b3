//! The page's files as a table in the program: each with its type, its entity tag and its bytes, plain and compressed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::pack::{Coding, Packer};
use crate::{Finish, finish, names, web_target};

/// Writes `assets.rs`, which the server includes: a slice of its `Asset`, sorted by path. The slice is empty without a
/// page. Debug pages have no compressed files: making them takes longer than the compiler. Others have the plain form only of
/// files that gzip can't make smaller.
pub(crate) fn write(dist: Option<&Path>, out: &Path) -> Result<()> {
    let mut files = Vec::new();
    if let Some(dist) = dist {
        list(dist, dist, &mut files)?;
    }
    files.sort();
    let mut packer = if dist.is_some() && finish()? != Finish::Debug {
        Some(Packer::new(web_target()?.join("packed"))?)
    } else {
        None
    };

    let contents = files.iter().map(|(_, file)| {
        let plain = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        let hash = names::hash(&plain);
        Ok((plain, hash))
    });
    let contents: Vec<(Vec<u8>, String)> = contents.collect::<Result<_>>()?;
    if let Some(packer) = &packer {
        packer.prepare(&contents)?;
    }

    let mut table = String::from("&[\n");
    for ((path, file), (plain, hash)) in files.iter().zip(&contents) {
        let mut packed = |coding| -> Result<String> {
            let file = packer.as_mut().map(|packer| packer.pack(plain, hash, coding)).transpose()?.flatten();
            Ok(file.map_or_else(|| "None".to_owned(), |file| format!("Some(include_bytes!({file:?}))")))
        };
        #[cfg(feature = "published-page")]
        let brotli = packed(Coding::Brotli)?;
        #[cfg(not(feature = "published-page"))]
        let brotli = "None";
        let gzip = packed(Coding::Gzip)?;
        let plain = if gzip == "None" { format!("Some(include_bytes!({file:?}))") } else { "None".to_owned() };
        writeln!(
            table,
            "    Asset {{ path: {path:?}, content_type: {:?}, hash: {hash:?}, is_immutable: {}, \
             plain: {plain}, brotli: {brotli}, gzip: {gzip} }},",
            content_type(path)?,
            names::is_hashed(path, hash),
        )?;
    }
    table.push_str("]\n");
    if let Some(packer) = packer {
        packer.prune()?;
    }
    fs::write(out.join("assets.rs"), table).context("writing the table of assets")
}

/// Lists all files below `folder`, with their path from `root` as it stands in a URL.
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

/// Returns the content type of a file. Fails for a kind of file that is not listed here.
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
