//! `shared` stays pure: its dependencies are listed here, and none of its code does I/O.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::workspace;

/// All direct and indirect dependencies of `shared`. A new one must do no I/O, need no clock, and build for the browser.
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

#[test]
fn shared_names_nothing_that_reaches_outside() -> Result<()> {
    let mut folders = vec![workspace("shared/src")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let text = std::fs::read_to_string(&path)?;
            // Tests may use a clock.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for name in FORBIDDEN {
                assert!(!code.contains(name), "{} names {name}", path.display());
            }
        }
    }
    assert!(files > 5, "only {files} files found");
    let root = std::fs::read_to_string(workspace("shared/src/lib.rs"))?;
    assert!(root.contains("#![forbid(unsafe_code)]"));
    Ok(())
}
