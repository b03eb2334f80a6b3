//! `shared` stays pure: its dependencies are listed here, and none of its code does I/O.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::workspace;

/// All direct and indirect dependencies of `shared`. A new one must do no I/O, need no clock, and build for the browser.
const ALLOWED: [&str; 20] = [
    "adler2",
    "bytemuck",
    "cfg-if",
    "cobs",
    "crc32fast",
    "flate2",
    "hashbrown",
    "lz4_flex",
    "miniz_oxide",
    "num-traits",
    "postcard",
    "regex-lite",
    "rmp",
    "rustc-hash",
    "ruzstd",
    "serde",
    "serde_bytes",
    "serde_core",
    "simd-adler32",
    "thiserror",
];

/// Names that code without files, sockets, threads and clocks never uses.
const FORBIDDEN: [&str; 9] = [
    "std::fs",
    "std::net",
    "std::thread",
    "std::process",
    "std::env",
    "std::time::Instant",
    "std::time::SystemTime",
    "SystemTime::now",
    "Instant::now",
];

/// The modules of `shared`, from the bottom up. A module may use those of lower layers only: never its own layer, and
/// never a higher one. A new module gets the lowest layer above everything it uses.
const LAYERS: &[&[&str]] = &[
    &["budget", "category", "checksum", "decimal", "limits", "order", "text"],
    &["numbered", "setting", "units"],
    &["error", "event", "sweep"],
    &["frames", "msgpack"],
    &["trace"],
    &["index"],
    &["allocator", "finding", "format", "totals", "values", "wire"],
    &["diagnosis"],
    &["pickle", "query", "replay"],
    &["baked"],
    &["export", "link", "measures", "monitor", "recording", "redaction"],
    &["import", "whatif"],
    &["analysis"],
    &["doctor"],
    &["lod", "report"],
    &["heatmap"],
    &["tracker"],
    &["session"],
    &["preview"],
];

#[test]
fn shared_is_built_from_what_is_listed() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(workspace(""))
        .args(["tree", "--package", "shared", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(["--target", "wasm32-unknown-unknown", "--no-dedupe"])
        .output()
        .context("starting cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout)?;
    let built: BTreeSet<&str> = tree
        .lines()
        // Procedural macros run in the compiler only.
        .filter(|line| !line.contains("(proc-macro)"))
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "shared")
        .collect();
    let macros = ["proc-macro2", "quote", "syn", "unicode-ident"];
    let unlisted: Vec<_> = built.iter().filter(|name| !ALLOWED.contains(name) && !macros.contains(name)).collect();
    assert!(unlisted.is_empty(), "not listed: {unlisted:?}");
    Ok(())
}

/// The files of `shared` with their paths below `shared/src`, up to their unit tests: tests may measure, and may use
/// any module.
fn sources() -> Result<Vec<(PathBuf, String)>> {
    let root = workspace("shared/src");
    let (mut folders, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path)?;
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            files.push((path.strip_prefix(&root)?.to_owned(), code.to_owned()));
        }
    }
    ensure!(files.len() > 5, "only {} files found", files.len());
    Ok(files)
}

#[test]
fn modules_of_shared_use_lower_layers_only() -> Result<()> {
    let layer_of = |module: &str| LAYERS.iter().position(|layer| layer.contains(&module));
    for (path, code) in sources()? {
        let first = path.components().next().context("a file has a path")?.as_os_str().to_string_lossy();
        let module = first.trim_end_matches(".rs");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_test = name.ends_with("tests.rs") || name == "testing.rs";
        if matches!(module, "lib" | "testing") || is_test || path.extension() != Some("rs".as_ref()) {
            continue;
        }
        let layer = layer_of(module).with_context(|| format!("{module} has no layer yet: add it to LAYERS"))?;
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for used in lines.flat_map(|line| line.split("crate::").skip(1)) {
            let used: String = used.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let Some(below) = layer_of(&used).filter(|_| used != module) else {
                ensure!(used == module || used.is_empty(), "{}: {used} has no layer", path.display());
                continue;
            };
            ensure!(below < layer, "{} uses {used}, which is not of a lower layer than {module}", path.display());
        }
    }
    Ok(())
}

#[test]
fn shared_names_nothing_that_reaches_outside() -> Result<()> {
    for (path, code) in sources()? {
        for name in FORBIDDEN {
            assert!(!code.contains(name), "{} names {name}", path.display());
        }
    }
    let root = std::fs::read_to_string(workspace("shared/src/lib.rs"))?;
    assert!(root.contains("#![forbid(unsafe_code)]"));
    Ok(())
}
