//! Compiles the crates of the page to WebAssembly.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{Finish, finish, target, variable, web_target, workspace};

/// Variables of the outer cargo that the inner one must still see: where its cache is, how it reaches the network, and
/// how many jobs it may run.
const KEPT: [&str; 6] =
    ["CARGO_HOME", "CARGO_MAKEFLAGS", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_"];

/// Variables that describe the outer build, apart from all that begin with `CARGO_` or `RUSTC`.
const OUTER: [&str; 8] = ["RUSTFLAGS", "RUSTDOC", "TARGET", "HOST", "OUT_DIR", "PROFILE", "OPT_LEVEL", "NUM_JOBS"];

/// A WebAssembly module of the page.
pub(crate) struct Module {
    /// The package that it is built from.
    pub(crate) package: &'static str,
    /// Its file's name, without extension.
    pub(crate) name: &'static str,
}

/// Modules that are compiled together, so that what they share is compiled once.
pub(crate) struct Group {
    pub(crate) modules: &'static [Module],
    profile: &'static str,
    /// Flags for the compiler.
    flags: &'static [&'static str],
}

/// 128-bit SIMD: Chrome 91, Firefox 89 and Safari 16.4 were the first with it. (Bulk memory operations are on by default:
/// Chrome 75, Firefox 79, Safari 15.)
const SIMD: &[&str] = &["-C", "target-feature=+simd128"];

/// The page is cut in two by what refers to what, which only the linker knows.
const TWO_MODULES: &[&str] = &["--cfg", "two_modules", "-C", "link-arg=--emit-relocs"];

/// The page draws; the engine reads and answers, and what-if runs a trace's requests again, each in a worker.
const MODULES: &[Module; 3] = &[
    Module { package: "web", name: "page" },
    Module { package: "engine", name: "engine" },
    Module { package: "whatif-worker", name: "whatif" },
];

/// Returns the modules as they are compiled: all together, since crates are compiled twice where profile or flags differ; or, as
/// users install them, the page on its own and without SIMD, for size.
pub(crate) fn groups() -> Result<Vec<Group>> {
    let (page, workers) = MODULES.split_at(1);
    Ok(match finish()? {
        Finish::Debug => vec![Group { modules: MODULES, profile: "web-dev", flags: SIMD }],
        Finish::Release => vec![Group { modules: MODULES, profile: "page", flags: SIMD }],
        Finish::Published => vec![
            Group { modules: page, profile: "published-page", flags: TWO_MODULES },
            Group { modules: workers, profile: "page", flags: SIMD },
        ],
    })
}

/// Compiles modules. Returns the folder of their WebAssembly: `PACKAGE.wasm`, with `_` for `-`.
pub(crate) fn compile(group: &Group) -> Result<PathBuf> {
    let folder = web_target()?;

    let mut cargo = Command::new(variable("CARGO")?);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_outer = OUTER.contains(&text.as_ref()) || text.starts_with("CARGO_") || text.starts_with("RUSTC");
        if is_outer && !KEPT.iter().any(|kept| text.starts_with(kept)) {
            cargo.env_remove(&name);
        }
    }
    let mut flags: Vec<String> = group.flags.iter().map(|&flag| flag.to_owned()).collect();
    flags.extend(shorter_paths());
    let status = cargo
        .current_dir(workspace()?)
        .args(["build", "--lib", "--target", target::WASM, "--profile", group.profile])
        .args(group.modules.iter().flat_map(|module| ["--package", module.package]))
        .arg("--target-dir")
        .arg(&folder)
        .args(["--config", &format!("target.{}.rustflags={flags:?}", target::WASM)])
        .status()
        .context("starting cargo for the page")?;
    if !status.success() {
        let names: Vec<&str> = group.modules.iter().map(|module| module.package).collect();
        bail!("{} did not build; the compiler's messages are below", names.join(" and "));
    }
    Ok(folder.join(target::WASM).join(group.profile))
}

/// Returns flags that remove this machine's cargo folder from the paths of dependencies: each place in them that can
/// panic names its file, so the module's size would depend on the name of a home folder.
fn shorter_paths() -> Vec<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    // One folder per registry; none where crates are vendored.
    let registries = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok()).into_iter().flatten().flatten();
    let mut flags: Vec<String> =
        registries.map(|registry| format!("--remap-path-prefix={}/=", registry.path().display())).collect();
    flags.sort();
    flags
}
