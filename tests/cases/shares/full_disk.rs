//! Commands whose file doesn't fit: they say that the disk is full and where, and leave what was there.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tests::server::Server;
use tests::{Folder, program};

use super::{Client, fixture, recording};

/// Writes until nothing more fits.
fn fill(disk: &Folder) -> Result<()> {
    let mut ballast = fs::File::create(disk.join("ballast"))?;
    while ballast.write_all(&[1; 4_096]).is_ok() {}
    while ballast.write_all(&[1]).is_ok() {}
    Ok(())
}

#[test]
fn a_command_whose_disk_is_full_says_so_and_leaves_what_was_there() -> Result<()> {
    let (Some(full), Some(crowded)) = (Folder::disk("full", 1)?, Folder::disk_for_files("crowded", 3)?) else {
        eprintln!("skipped: mounting a small disk needs rights that this user has not");
        return Ok(());
    };
    let server = Server::start()?;
    let (token, _) = Client::new(server.address()).share(&recording(), &json!({}))?;
    let (file, link) = (fixture(), format!("{}s-{token}", server.url()));
    let file = file.to_str().context("a path")?;
    let commands: [(&[&str], &str); 5] = [
        (&["strip", file], "vramscope"),
        (&["pull", &link], "vramscope"),
        (&["run", "transformer", "--steps", "2"], "pickle"),
        (&["run", "transformer", "--steps", "2"], "vramscope"),
        (&["sweep", "transformer", "batch=1..2"], "json"),
    ];
    for (disk, why) in [(&full, "the disk is full"), (&crowded, "the disk has no room for another file")] {
        let out = |ending: &str| disk.join(format!("a.{ending}"));
        let is_full = why == "the disk is full";
        // Of a recording, which grows in place, only a new one is named here.
        fs::write(out("pickle"), "before")?;
        if is_full {
            fill(disk)?;
        } else {
            (0..2).try_for_each(|i| fs::write(disk.join(format!("ballast-{i}")), ""))?;
        }
        for (command, ending) in commands {
            let path = out(ending);
            let name = path.to_str().context("a path")?;
            let output = program::run(&[command, &["--out", name, "--force"]].concat())?;
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
            let line = said.lines().last().unwrap_or_default();
            let is_named = line.starts_with("error: ") && line.contains(name) && line.contains(why);
            let is_advised = line.contains("Make room") || line.contains("free some disk space");
            ensure!(is_named && is_advised, "{command:?}: {said}");
            let left: Vec<_> =
                fs::read_dir(disk)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
            ensure!(
                left.iter().all(|name| name == "a.pickle" || name.to_string_lossy().starts_with("ballast")),
                "{left:?}"
            );
            assert_eq!(fs::read_to_string(out("pickle"))?, "before", "{command:?}");
        }
        for entry in fs::read_dir(disk)? {
            fs::remove_file(entry?.path())?;
        }
        let path = out("vramscope");
        let output = program::run(&["strip", file, "--out", path.to_str().context("a path")?])?;
        ensure!(output.status.success() && path.exists(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
