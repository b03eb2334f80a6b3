//! File names that carry a hash of the file's content, so that browsers may keep the files forever.
//!
//! `boot.js` becomes `boot-0123456789abcdef.js`, and every file that names `"boot.js"` or `"./boot.js"`, in double quotes,
//! names that instead. A file's hash therefore covers the files that it refers to. `index.html` keeps its name.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The only file whose address must not change.
const ENTRY: &str = "index.html";

/// Returns the hash of a file's content as 16 hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:016x}", hasher.finish())
}

/// Returns whether a file's name carries the hash of its content.
pub(crate) fn is_hashed(name: &str, hash: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.rsplit_once('-').is_some_and(|(_, end)| end == hash)
}

/// Copies all files of the folder `from` to the folder `to`, with hashes in their names and in their references.
pub(crate) fn with_hashes(from: &Path, to: &Path) -> Result<()> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.insert(name, fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
    }
    let mut renamed = BTreeMap::new();
    for name in files.keys() {
        write(name, &files, to, &mut renamed, &mut Vec::new())?;
    }
    Ok(())
}

/// Writes a file after the files that it refers to. Returns its new name. `path` lists the files that led here.
fn write<'a>(
    name: &'a str,
    files: &'a BTreeMap<String, Vec<u8>>,
    to: &Path,
    renamed: &mut BTreeMap<&'a str, String>,
    path: &mut Vec<&'a str>,
) -> Result<String> {
    if let Some(new) = renamed.get(name) {
        return Ok(new.clone());
    }
    if path.contains(&name) {
        bail!("the page's files refer to each other in a circle: {}, {name}", path.join(", "));
    }
    path.push(name);
    let mut bytes = files.get(name).cloned().unwrap_or_default();
    if let Ok(mut text) = String::from_utf8(bytes.clone()) {
        for other in files.keys().filter(|other| *other != name) {
            let (plain, relative) = (format!("\"{other}\""), format!("\"./{other}\""));
            if text.contains(&plain) || text.contains(&relative) {
                let new = write(other, files, to, renamed, path)?;
                text = text.replace(&plain, &format!("\"{new}\"")).replace(&relative, &format!("\"./{new}\""));
            }
        }
        bytes = text.into_bytes();
    }
    path.pop();
    let new = match name.rsplit_once('.') {
        Some((stem, extension)) if name != ENTRY => format!("{stem}-{}.{extension}", hash(&bytes)),
        _ => name.to_owned(),
    };
    fs::write(to.join(&new), &bytes).with_context(|| format!("writing {new}"))?;
    renamed.insert(name, new.clone());
    Ok(new)
}
