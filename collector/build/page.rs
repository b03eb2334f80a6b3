//! The page's build: the crate `web` as WebAssembly, its JavaScript glue, and the static files beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use wasm_bindgen_cli_support::Bindgen;

use crate::{target, variable};

/// Variables of the outer cargo that the inner one must still see: where its cache is, how it reaches the network,
/// and how many jobs it may run.
const KEPT: [&str; 6] =
    ["CARGO_HOME", "CARGO_MAKEFLAGS", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_"];

/// Variables that mean the outer build, apart from all that begin with `CARGO_` or `RUSTC`.
const OUTER: [&str; 8] = ["RUSTFLAGS", "RUSTDOC", "TARGET", "HOST", "OUT_DIR", "PROFILE", "OPT_LEVEL", "NUM_JOBS"];

/// Builds the page and gives the folder that holds it.
pub(crate) fn build(out: &Path) -> Result<PathBuf> {
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR")?)
        .parent()
        .map(Path::to_path_buf)
        .ok_or_else(|| anyhow!("the workspace folder is missing"))?;
    for input in [".cargo/config.toml", "web", "shared/src", "shared/Cargo.toml", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", workspace.join(input).display());
    }

    target::ensure(&variable("RUSTC")?)?;
    let wasm = compile(&workspace)?;

    let dist = out.join("dist");
    // Nothing of an earlier page may stay.
    if dist.exists() {
        fs::remove_dir_all(&dist).with_context(|| format!("removing {}", dist.display()))?;
    }
    Bindgen::new()
        .input_path(&wasm)
        .web(true)?
        .typescript(false)
        // Names of functions: a third of the module, and of use to a debugger only.
        .remove_name_section(variable("PROFILE")? == "release")
        .remove_producers_section(true)
        // Without its default path the glue would not find the module, and the page would stay blank.
        .omit_default_module_path(false)
        .out_name("web")
        .generate(&dist)
        .context("writing the page's JavaScript glue")?;
    copy(&workspace.join("web/static"), &dist)?;
    Ok(dist)
}

/// Compiles the crate `web` in a target folder of its own: the outer cargo holds the lock of its own one.
fn compile(workspace: &Path) -> Result<PathBuf> {
    let profile = if variable("PROFILE")? == "release" { "page" } else { "page-dev" };
    let folder = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| workspace.join("target"), PathBuf::from).join("web");

    let mut cargo = Command::new(variable("CARGO")?);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let outer = OUTER.contains(&text.as_ref()) || text.starts_with("CARGO_") || text.starts_with("RUSTC");
        if outer && !KEPT.iter().any(|kept| text.starts_with(kept)) {
            cargo.env_remove(&name);
        }
    }
    let status = cargo
        .current_dir(workspace)
        .args(["build", "--package", "web", "--lib", "--target", target::WASM, "--profile", profile, "--target-dir"])
        .arg(&folder)
        .args(["--config", &format!("target.{}.rustflags={:?}", target::WASM, shorter_paths())])
        .status()
        .context("starting cargo for the page")?;
    if !status.success() {
        bail!("the page (package `web`) did not build; the compiler's messages are below");
    }
    Ok(folder.join(target::WASM).join(profile).join("web.wasm"))
}

/// What makes the compiler leave out where this machine keeps other people's crates: each place in them that can panic
/// names its file, so that the module's size would hang on the name of a home folder. Added to `.cargo/config.toml`'s.
fn shorter_paths() -> Vec<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    // One folder for each registry; none at all where crates are vendored.
    let registries = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok()).into_iter().flatten().flatten();
    let mut flags: Vec<String> =
        registries.map(|registry| format!("--remap-path-prefix={}/=", registry.path().display())).collect();
    flags.sort();
    flags
}

/// Copies a folder's files, folders within it included.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
