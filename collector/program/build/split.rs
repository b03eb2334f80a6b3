//! Cuts the page's module in two: what its first picture needs, and what comes later.
//!
//! `web/src/later.rs` marks the place. The second module has what only that place reaches; both share one memory and one table of
//! functions. boot.js loads it, also from a page that is one file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use wasm_split_cli_support::{Options, transform};

/// The script that the library would have load the second module.
const LINK: &str = "./later.js";

/// The function that the first module imports from it.
const LOAD: &str = "__wasm_split_load_later";

/// The two modules of the page.
pub(crate) struct Halves {
    /// The first one, for wasm-bindgen.
    pub(crate) first: PathBuf,
    /// The second one, which needs no glue.
    pub(crate) second: Vec<u8>,
}

/// Cuts a module in two. `folder` is emptied, and receives them.
pub(crate) fn split(wasm: &Path, folder: &Path) -> Result<Halves> {
    let input = fs::read(wasm).with_context(|| format!("reading {}", wasm.display()))?;
    let first = folder.join("first.wasm");
    let mut options = Options::new(&input);
    options.output_dir = folder;
    options.main_out_path = &first;
    options.link_name = LINK;
    let split = transform(options).map_err(|error| anyhow!("cutting {} in two: {error:#}", wasm.display()))?;
    let [second] = split.split_modules.as_slice() else {
        return Err(anyhow!("{} is cut into {} pieces instead of two", wasm.display(), split.split_modules.len() + 1));
    };
    let second = fs::read(second).with_context(|| format!("reading {}", second.display()))?;
    Ok(Halves { first, second })
}

/// Returns glue that calls the function `loadLater` of boot.js, with the first module's exports, in place of one of a script that a
/// page of one file could not import.
pub(crate) fn link(glue: &str) -> Result<String> {
    let mut linked = String::new();
    let mut name = None;
    for line in glue.lines() {
        let imported = line.strip_prefix("import * as ").and_then(|rest| rest.split_once(" from "));
        if let Some((imported, _)) = imported.filter(|(_, from)| from.contains(LINK)) {
            name = Some(imported);
            continue;
        }
        linked.push_str(line);
        linked.push('\n');
    }
    let name = name.with_context(|| format!("the JavaScript glue does not import {LINK}"))?;
    let import = format!("\"{LINK}\": {name}");
    ensure!(linked.contains(&import), "the JavaScript glue does not pass {LINK} on");
    let load = format!("{LOAD}: (done, data) => loadLater(wasm, done, data)");
    Ok(linked.replace(&import, &format!("\"{LINK}\": {{ {load} }}")))
}
