//! The page's build: three WebAssembly modules, their JavaScript glue, and the static files beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, ensure};

use crate::bind::bind;
use crate::compile::{Group, Module, compile, groups};
use crate::{names, target, variable, workspace};

/// What the page is built from, in the workspace's folder, beside the crates of `shared`.
const INPUTS: [&str; 3] = ["web", "Cargo.toml", "Cargo.lock"];

/// Builds the page. Returns the folder that holds it.
pub(crate) fn build(out: &Path) -> Result<PathBuf> {
    let workspace = workspace()?;
    let mut inputs: Vec<PathBuf> = INPUTS.iter().map(|input| workspace.join(input)).collect();
    for entry in fs::read_dir(workspace.join("shared")).context("reading the folder shared")? {
        let folder = entry?.path();
        // Their tests and benches are no part of the page.
        inputs.extend(["src", "Cargo.toml"].map(|name| folder.join(name)).into_iter().filter(|path| path.exists()));
    }
    for input in inputs {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    target::ensure(&variable("RUSTC")?)?;

    let parts = out.join("parts");
    // Nothing of an earlier page may stay.
    empty(&parts)?;
    let groups = groups()?;
    let compiled =
        compile_all(&groups).into_iter().map(|(group, folder)| Ok((group, folder?))).collect::<Result<Vec<_>>>()?;
    for bound in bind_all(&compiled, out) {
        copy(&bound?, &parts)?;
    }
    copy(&workspace.join("web/static"), &parts)?;
    write_rerun(&parts)?;
    join_stylesheets(&parts)?;

    let dist = out.join("dist");
    empty(&dist)?;
    names::with_hashes(&parts, &dist)?;
    Ok(dist)
}

/// Compiles groups of modules side by side: most of each is one crate after the other, on one core.
fn compile_all(groups: &[Group]) -> Vec<(&Group, Result<PathBuf>)> {
    thread::scope(|scope| {
        let threads: Vec<_> = groups.iter().map(|group| (group, scope.spawn(|| compile(group)))).collect();
        threads.into_iter().map(|(group, thread)| (group, thread.join().expect("no compilation panics"))).collect()
    })
}

/// Binds the modules that have changed, side by side. Returns the folders with all of them.
fn bind_all(compiled: &[(&Group, PathBuf)], out: &Path) -> Vec<Result<PathBuf>> {
    thread::scope(|scope| {
        let modules =
            compiled.iter().flat_map(|(group, folder)| group.modules.iter().map(move |module| (module, folder)));
        let work = |module: &Module, folder: &Path| {
            let wasm = folder.join(module.package.replace('-', "_")).with_extension("wasm");
            let bound = out.join("bound").join(module.name);
            if !is_newer(&bound.join(format!("{}.js", module.name)), &wasm) {
                empty(&bound)?;
                bind(module, &wasm, &bound)?;
            }
            Ok(bound)
        };
        let threads: Vec<_> = modules.map(|(module, folder)| scope.spawn(move || work(module, folder))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no binding panics")).collect()
    })
}

/// Returns whether a file was written after `input`, and by this very build script.
fn is_newer(file: &Path, input: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let script = std::env::current_exe().ok();
    let Some(written) = changed(file) else { return false };
    [Some(input), script.as_deref()].into_iter().all(|path| path.and_then(changed).is_some_and(|time| time < written))
}

/// Writes the script that runs the what-if module in a worker: that of the engine, with another module.
fn write_rerun(folder: &Path) -> Result<()> {
    let engine = fs::read_to_string(folder.join("worker.js")).context("reading worker.js")?;
    let rerun = engine.replacen("\"./engine.js\"", "\"./whatif.js\"", 1);
    ensure!(rerun != engine, "worker.js does not import ./engine.js");
    fs::write(folder.join("rerun.js"), rerun).context("writing rerun.js")
}

/// Replaces the stylesheets that `index.html` links by one file, since each would be a request of its own before the page can be
/// drawn.
fn join_stylesheets(folder: &Path) -> Result<()> {
    const JOINED: &str = "page.css";
    let entry = folder.join("index.html");
    let html = fs::read_to_string(&entry).context("reading index.html")?;
    let (mut joined, mut kept) = (String::new(), String::new());
    for line in html.lines() {
        let name = line.trim().strip_prefix("<link rel=\"stylesheet\" href=\"").and_then(|rest| rest.split('"').next());
        let Some(name) = name else {
            kept.push_str(line);
            kept.push('\n');
            continue;
        };
        if joined.is_empty() {
            kept.push_str(&format!("    <link rel=\"stylesheet\" href=\"{JOINED}\" />\n"));
        }
        let path = folder.join(name);
        joined.push_str(&fs::read_to_string(&path).with_context(|| format!("reading {name}, which index.html links"))?);
        fs::remove_file(path)?;
    }
    fs::write(folder.join(JOINED), joined)?;
    fs::write(entry, kept).context("writing index.html")
}

/// Makes sure that a folder exists and is empty.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
