//! The crates of `shared` stay pure: what they may depend on is listed here, and none of their code does I/O.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::{files_in, workspace};

/// All dependencies of the crates of `shared`, direct and indirect. A new one must do no I/O, need no clock, and build for the
/// browser.
const ALLOWED: [&str; 18] = [
    "adler2",
    "bytemuck",
    "cfg-if",
    "crc32fast",
    "flate2",
    "hashbrown",
    "lz4_flex",
    "miniz_oxide",
    "num-traits",
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

/// The crates of `shared`, each with those of them that it may use. A crate may only name crates above it in this table; Cargo
/// keeps the rest.
const FLOORS: [(&str, &[&str]); 12] = [
    ("trace", &[]),
    ("codec", &["trace"]),
    ("wire", &["codec", "trace"]),
    ("query", &["codec", "trace", "wire"]),
    ("allocator", &["trace"]),
    ("replay", &["allocator", "trace"]),
    ("format", &["allocator", "codec", "query", "replay", "trace", "wire"]),
    ("analysis", &["allocator", "codec", "query", "replay", "trace", "wire"]),
    ("compare", &["allocator", "analysis", "codec", "query", "replay", "trace", "wire"]),
    ("doctor", &["allocator", "analysis", "codec", "query", "replay", "trace", "wire"]),
    ("whatif", &["allocator", "codec", "format", "query", "replay", "trace", "wire"]),
    (
        "session",
        &[
            "allocator",
            "analysis",
            "codec",
            "compare",
            "doctor",
            "format",
            "query",
            "replay",
            "trace",
            "whatif",
            "wire",
        ],
    ),
];

/// What the page is built from: types, without anything that reads or computes.
const PAGE: [&str; 4] = ["codec", "query", "trace", "wire"];

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

/// Returns all that a package is built from for the browser, without procedural macros, which run in the compiler only.
fn built_from(package: &str) -> Result<BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(workspace(""))
        .args(["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(["--target", "wasm32-unknown-unknown", "--no-dedupe"])
        .output()
        .context("starting cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout)?;
    let names = tree.lines().filter(|line| !line.contains("(proc-macro)")).filter_map(|line| line.split(' ').next());
    Ok(names.filter(|name| !name.is_empty() && *name != package).map(str::to_owned).collect())
}

/// The names of the crates of `shared`.
fn crates() -> Result<BTreeSet<String>> {
    let mut crates = BTreeSet::new();
    for entry in std::fs::read_dir(workspace("shared"))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").exists() {
            crates.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(crates)
}

#[test]
fn shared_is_built_from_what_is_listed() -> Result<()> {
    let macros = ["proc-macro2", "quote", "syn", "unicode-ident"];
    let crates = crates()?;
    let listed: BTreeSet<String> = FLOORS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(crates, listed, "the crates of `shared`, and those of FLOORS");
    let mut above = Vec::new();
    for (name, allowed) in FLOORS {
        for built in built_from(name)? {
            if crates.contains(&built) {
                assert!(allowed.contains(&built.as_str()) && above.contains(&built), "{name} uses {built}");
            } else {
                let is_listed = ALLOWED.contains(&built.as_str()) || macros.contains(&built.as_str());
                assert!(is_listed, "{name} uses {built}, which is not listed");
            }
        }
        above.push(name.to_owned());
    }
    Ok(())
}

#[test]
fn the_page_depends_on_types_alone() -> Result<()> {
    let crates = crates()?;
    let used: BTreeSet<String> = built_from("web")?.into_iter().filter(|name| crates.contains(name)).collect();
    assert_eq!(used, PAGE.map(str::to_owned).into());
    Ok(())
}

/// The source files of `shared`, up to their unit tests: tests may measure.
fn sources() -> Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    for name in crates()? {
        for path in files_in(&workspace("shared").join(name).join("src"))? {
            let text = std::fs::read_to_string(&path)?;
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            files.push((path, code.to_owned()));
        }
    }
    ensure!(files.len() > 100, "only {} files found", files.len());
    Ok(files)
}

#[test]
fn shared_names_nothing_that_reaches_outside() -> Result<()> {
    for (path, code) in sources()? {
        for name in FORBIDDEN {
            assert!(!code.contains(name), "{} names {name}", path.display());
        }
        if path.ends_with("src/lib.rs") {
            assert!(code.contains("#![forbid(unsafe_code)]"), "{}", path.display());
        }
    }
    Ok(())
}
