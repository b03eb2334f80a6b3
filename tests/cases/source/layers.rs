//! The folders of the page and of the collector import each other in one direction only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};
use tests::{files_in, workspace};

/// Folders (or files), each with those that it may import. A folder may only name folders above it in its table, so there
/// can be no circle.
type Layers = &'static [(&'static str, &'static [&'static str])];

/// The layers of `web/src`. `protocol` stands for the messages between the page and its engine.
const WEB: Layers = &[
    ("protocol", &[]),
    ("browser", &[]),
    ("crash", &["browser"]),
    ("model", &["protocol"]),
    ("worker", &["protocol", "browser", "model"]),
    ("render", &["browser"]),
    ("hooks", &["protocol", "browser", "model", "worker", "render"]),
    ("deferred", &["browser", "hooks", "model"]),
    ("widgets", &["browser", "render"]),
    ("theme", &["browser", "model", "hooks", "widgets"]),
    ("source", &["protocol", "browser", "model", "hooks", "worker"]),
    ("address", &["browser", "model", "hooks", "source"]),
    ("views", &["browser", "model", "render", "hooks", "widgets", "source"]),
    ("input", &["browser", "model", "hooks", "widgets", "theme", "source", "address", "views"]),
    ("shell", &["protocol", "browser", "model", "hooks", "deferred", "worker", "widgets", "theme", "source", "views"]),
    ("share", &["protocol", "browser", "model", "hooks", "worker", "widgets", "source", "shell"]),
    ("later", &["deferred", "hooks", "model", "views", "input", "shell", "share"]),
    (
        "app",
        &["browser", "model", "hooks", "deferred", "render", "theme", "source", "address", "input", "shell", "later"],
    ),
];

/// The layers of `collector/src`.
const COLLECTOR: Layers = &[
    ("assets", &[]),
    ("baseline", &[]),
    ("brief_lock", &[]),
    ("clock", &[]),
    ("driver", &[]),
    ("file_name", &[]),
    ("host_name", &[]),
    ("picture", &[]),
    ("script", &[]),
    ("size", &[]),
    ("access", &["clock", "size"]),
    ("announcement", &["access", "clock", "host_name"]),
    ("bus", &["brief_lock"]),
    ("offline", &["assets"]),
    ("store", &["brief_lock", "host_name"]),
    ("workloads", &["driver"]),
    ("remote", &["baseline", "store"]),
    ("shares", &["access", "clock", "store"]),
    ("ingest", &["access", "brief_lock", "bus", "clock", "store"]),
    (
        "server",
        &[
            "access",
            "assets",
            "baseline",
            "brief_lock",
            "bus",
            "clock",
            "file_name",
            "ingest",
            "offline",
            "picture",
            "shares",
            "store",
            "workloads",
        ],
    ),
    (
        "cli",
        &[
            "access",
            "announcement",
            "assets",
            "baseline",
            "bus",
            "clock",
            "file_name",
            "host_name",
            "ingest",
            "offline",
            "remote",
            "script",
            "server",
            "shares",
            "size",
            "store",
            "workloads",
        ],
    ),
];

/// What the model, which is pure data, never names.
const OUTSIDE: [&str; 5] = ["web_sys", "js_sys", "wasm_bindgen", "yew::", "gloo"];

/// The folders that a piece of source names as `crate::…`.
fn imports(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        let names = match part.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => part.split([';', ',', '\n', '(', '<', ')', '>', ' ']).next().unwrap_or_default(),
        };
        for path in names.split(',') {
            let path = path.trim();
            let folder = path.split("::").next().unwrap_or_default();
            let is_message = path.starts_with("worker::message") || path.starts_with("worker::failure");
            found.insert(if is_message { "protocol" } else { folder }.to_owned());
        }
    }
    if code.contains("protocol::") {
        found.insert("protocol".to_owned());
    }
    found
}

/// Returns the sources of a folder or file without their tests, by path.
fn sources(root: &str, name: &str) -> Result<BTreeMap<String, String>> {
    let (folder, file) = (workspace(&format!("{root}/{name}")), workspace(&format!("{root}/{name}.rs")));
    let mut sources = BTreeMap::new();
    for path in if folder.is_dir() { files_in(&folder)? } else { vec![file] } {
        let name = path.display().to_string();
        if !name.ends_with("tests.rs") && !name.ends_with("testing.rs") {
            let text = fs::read_to_string(path).with_context(|| name.clone())?;
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let code = code.split("#[cfg(test)]\npub").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            sources.insert(name, lines.collect::<Vec<_>>().join("\n"));
        }
    }
    Ok(sources)
}

#[test]
fn folders_import_only_what_is_below_them() -> Result<()> {
    for (root, layers) in [("web/src", WEB), ("collector/src", COLLECTOR)] {
        let mut below = Vec::new();
        for (folder, allowed) in layers {
            for name in *allowed {
                assert!(below.contains(name), "{folder} may not name {name}, which is not above it in the table");
            }
            below.push(*folder);
            if *folder == "protocol" {
                continue;
            }
            for (path, code) in sources(root, folder)? {
                for name in imports(&code) {
                    assert!(name == *folder || allowed.contains(&name.as_str()), "{path} imports {name}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn the_table_names_every_folder() -> Result<()> {
    for (root, layers) in [("web/src", WEB), ("collector/src", COLLECTOR)] {
        for entry in fs::read_dir(workspace(root))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let name = name.trim_end_matches(".rs");
            assert!(
                name == "lib" || layers.iter().any(|(folder, _)| *folder == name),
                "{root}/{name} is not in the table"
            );
        }
    }
    Ok(())
}

#[test]
fn the_model_never_touches_the_browser() -> Result<()> {
    for (path, code) in sources("web/src", "model")? {
        for name in OUTSIDE {
            assert!(!code.contains(name), "{path} names {name}");
        }
    }
    Ok(())
}
