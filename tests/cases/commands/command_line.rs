//! The command line: output, errors and exit codes.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Folder, program, workspace};

/// Parses JSON output.
fn json(stdout: &[u8]) -> Result<Value> {
    serde_json::from_slice(stdout).with_context(|| String::from_utf8_lossy(stdout).into_owned())
}

/// Reports on a file and compares the report with Python's count. Returns whether Python could read the file.
fn agrees_with_python(file: &Path, folder: &Path) -> Result<bool> {
    let path = file.to_str().context("a path without a name")?;
    let output = program::run(&["report", "--json", path])?;
    let report = folder.join("report.json");
    fs::write(&report, &output.stdout)?;
    let counted = Command::new("python3").arg(workspace("tests/cases/count.py")).arg(file).arg(&report).output()?;
    let said = String::from_utf8_lossy(&counted.stdout).into_owned();
    match counted.status.code() {
        Some(0) => {
            assert_eq!(output.status.code(), Some(0), "{path}");
            Ok(true)
        }
        // A file that Python can't read is refused, or reported as incomplete.
        Some(3) => {
            let refused = output.status.code() == Some(2);
            let findings = json(&output.stdout)?["files"][0]["findings"].as_array().map_or(0, Vec::len);
            assert!(refused || findings > 0, "{path} was read without a finding; {said}");
            Ok(false)
        }
        _ => panic!("{path}: {said}{}", String::from_utf8_lossy(&counted.stderr)),
    }
}

#[test]
fn help_names_every_command() -> Result<()> {
    let output = program::run(&["--help"])?;
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for word in [
        "serve",
        "watch",
        "stop",
        "report",
        "curves",
        "diff",
        "check",
        "baseline",
        "bisect",
        "doctor",
        "run",
        "sweep",
        "predict",
        "budget",
        "replay",
        "plan",
        "whatif",
        "tune",
        "strip",
        "export",
        "push",
        "pull",
        "unshare",
        "token",
        "store",
        "bench-allocators",
        "completions",
        "man",
        "open",
        "ls",
        "Understand:",
    ] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    // The options of `serve` are in its own help; `vramscope --listen` says so.
    assert!(!text.contains("--listen"), "{text}");
    let output = program::run(&["--listen=127.0.0.1:0"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("Write: vramscope serve --listen"), "{said}");
    // Long help is as short as the other; manual pages have the rest.
    let lines = |option: &str| -> Result<usize> {
        Ok(String::from_utf8_lossy(&program::run(&["budget", option])?.stdout).lines().count())
    };
    assert_eq!(lines("--help")?, lines("-h")?);
    Ok(())
}

#[test]
fn help_texts_stay() -> Result<()> {
    for command in [
        "serve",
        "watch",
        "stop",
        "report",
        "curves",
        "diff",
        "check",
        "baseline set",
        "bisect",
        "doctor",
        "run",
        "sweep",
        "predict",
        "budget",
        "replay",
        "plan",
        "whatif",
        "tune",
        "strip",
        "export",
        "push",
        "pull",
        "unshare",
        "token new",
        "store",
        "bench-allocators",
        "completions",
        "man",
        "open",
        "ls",
    ] {
        // The help names the program, whatever its file is called.
        let mut renamed = Command::new(program::path()?);
        renamed.arg0("another-name").args(command.split(' '));
        let output = renamed.arg("-h").env("COLUMNS", "120").output()?;
        let text = String::from_utf8(output.stdout)?;
        insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("help_{}", command.replace(' ', "_")), text);
        });
    }
    Ok(())
}

#[test]
fn the_report_agrees_with_an_independent_count() -> Result<()> {
    let folder = Folder::new("count")?;
    let sample = folder.join("sample.pickle");
    fs::write(&sample, vramscope::workloads::sample::snapshot())?;
    assert!(agrees_with_python(&sample, &folder)?);

    let mut read = 0;
    for entry in fs::read_dir(workspace("tests/fixtures"))? {
        let path = entry?.path();
        let name = path.to_string_lossy();
        // Python needs a package for zstd; the same snapshots exist in another compression.
        if [".pickle", ".json", ".gz"].iter().any(|ending| name.ends_with(ending)) {
            read += u32::from(agrees_with_python(&path, &folder)?);
        }
    }
    assert!(read >= 5, "only {read} fixtures were counted");
    Ok(())
}

#[test]
fn a_report_shows_the_lines_of_the_code_that_is_said_to_be_own() -> Result<()> {
    let path = workspace("tests/fixtures/cpp.pickle");
    let path = path.to_str().context("a path without a name")?;
    let report = |options: &[&str]| -> Result<(Option<i32>, String)> {
        let output = program::run(&[&["report", "-v", path], options].concat())?;
        let text = if output.status.success() { output.stdout } else { output.stderr };
        Ok((output.status.code(), String::from_utf8(text)?))
    };
    let (code, text) = report(&[])?;
    assert!(code == Some(0) && text.contains("×  linear  train.py:77"), "{text}");
    // Without own code, the operator's line stays, and is no longer that of the user.
    let (code, text) = report(&["--library", "train.py", "--mine", "at::"])?;
    assert!(code == Some(0) && text.contains("×  at::"), "{text}");
    let (code, text) = report(&["--mine", "/"])?;
    assert!(code != Some(0) && text.contains("Name a part of a path, such as site-packages/mylib."), "{text}");
    Ok(())
}

#[test]
fn an_unreadable_file_gets_one_line_and_the_others_are_reported() -> Result<()> {
    let folder = Folder::new("unreadable")?;
    let (good, bad) = (folder.join("good.pickle"), folder.join("bad\nname.pickle"));
    fs::write(&good, vramscope::workloads::sample::snapshot())?;
    fs::write(&bad, "no snapshot at all")?;
    let missing = folder.join("missing.pickle");
    let paths: Vec<&str> = [&*bad, &good, &missing, &folder].into_iter().filter_map(|path| path.to_str()).collect();

    let output = program::run(&[&["report", "--json"], &paths[..]].concat())?;
    assert_eq!(output.status.code(), Some(2));
    let report = json(&output.stdout)?;
    let files = report["files"].as_array().context("no list of files")?;
    // Each keeps its place.
    let named: Vec<_> = files.iter().map(|file| file["path"].as_str()).collect();
    assert_eq!(named, paths.iter().map(|path| Some(*path)).collect::<Vec<_>>());
    assert_eq!(files.iter().map(|file| file["error"].is_string()).collect::<Vec<_>>(), [true, false, true, true]);
    assert!(
        files[1]["devices"].is_array() && files[2]["error"] == "There is no such file. Check the path.",
        "{report}"
    );
    let errors = String::from_utf8(output.stderr)?;
    assert_eq!(errors.lines().count(), 3, "{errors}");
    for (line, name) in errors.lines().zip(["bad", "missing.pickle: ", "unreadable"]) {
        assert!(line.starts_with("error: ") && line.contains(name), "{line:?}");
    }

    // The same files as text.
    let output = program::run(&[&["report"], &paths[..]].concat())?;
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stdout)?;
    assert!(text.contains("good.pickle") && text.contains(" of device 0"), "{text}");
    Ok(())
}

#[test]
fn the_json_has_the_shape_that_scripts_rely_on() -> Result<()> {
    let folder = Folder::new("shape")?;
    let sample = folder.join("sample.pickle");
    fs::write(&sample, vramscope::workloads::sample::snapshot())?;
    let output = program::run(&["report", "--json", sample.to_str().context("a path without a name")?])?;
    let report = json(&output.stdout)?;
    let file = &report["files"][0];
    for key in ["path", "format", "protocol", "findings", "devices"] {
        assert!(!file[key].is_null(), "{key} is missing");
    }
    let codes: Vec<_> = file["findings"].as_array().into_iter().flatten().map(|finding| &finding["code"]).collect();
    assert!(codes.iter().any(|code| *code == "out_of_memory"), "{codes:?}");

    let device = &file["devices"][0];
    for (part, names) in [
        ("", &["device", "events", "unique_stacks", "unique_frames", "peak_stacks", "other_bytes"][..]),
        ("end", &["allocated_bytes", "active_bytes", "reserved_bytes", "requested_bytes", "segments", "blocks"]),
        ("start", &["allocated_bytes", "reserved_bytes"]),
        ("peak", &["requested_bytes", "event", "time_us"]),
    ] {
        let object = if part.is_empty() { device } else { &device[part] };
        for name in names {
            assert!(!object[*name].is_null(), "{part}.{name} is missing");
        }
    }
    let stacks = device["peak_stacks"].as_array().context("no stacks")?;
    assert_eq!(stacks.len(), 20);
    for stack in stacks {
        ensure!(stack["bytes"].is_u64() && stack["count"].is_u64() && stack["stack"][0].is_string(), "{stack}");
    }
    Ok(())
}

#[test]
fn a_closed_pipe_is_not_an_error() -> Result<()> {
    let folder = Folder::new("pipe")?;
    let sample = folder.join("sample.pickle");
    fs::write(&sample, vramscope::workloads::sample::snapshot())?;
    let mut child = Command::new(program::path()?)
        .args(["report", "--json"])
        .arg(&sample)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    Ok(())
}

#[test]
fn categories_of_a_report_add_up_to_the_peak() -> Result<()> {
    let folder = Folder::new("categories")?;
    let file = folder.join("a.pickle").to_string_lossy().into_owned();
    program::run(&["run", "leak", "--steps", "9", "--out", &file])?;
    let device = &json(&program::run(&["report", "--json", &file])?.stdout)?["files"][0]["devices"][0];
    let categories = device["peak_categories"].as_array().context("no categories")?;
    let sum: u64 = categories.iter().filter_map(|of| of["bytes"].as_u64()).sum();
    assert_eq!(Some(sum), device["peak"]["requested_bytes"].as_u64());
    Ok(())
}

#[test]
fn an_exported_page_has_a_trace_without_names_inside() -> Result<()> {
    let folder = Folder::new("export")?;
    let sample = folder.join("sam<ple.pickle");
    fs::write(&sample, vramscope::workloads::sample::snapshot())?;
    let sample = sample.to_string_lossy().into_owned();
    let page = folder.join("page.html").to_string_lossy().into_owned();
    for (arguments, wanted) in [
        (vec!["-o", "page.txt"], "End the name page.txt with .html."),
        (vec!["-o", &page, "--device", "7"], "there is no device 7"),
    ] {
        let output = program::run(&[&["export", &sample][..], &arguments].concat())?;
        let said = String::from_utf8_lossy(&output.stderr);
        // A program without the page has none to write.
        ensure!(output.status.code() == Some(2) && (said.contains(wanted) || said.contains("has no page")), "{said}");
        ensure!(!Path::new(&page).exists());
    }
    // Without --out, the page lies in the current folder.
    let output = Command::new(program::path()?).args(["export", &sample]).current_dir(&*folder).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("has no page") {
        return Ok(());
    }
    ensure!(output.status.success(), "{said}");
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(said.contains("Names left out: users (1)"), "{said}");
    let html = fs::read_to_string(folder.join("sam<ple.html"))?;
    ensure!(html.contains("id=\"vramscope-trace\" data-name=\"sam&lt;ple.vramscope\">iVZSUw0KGgo"), "no trace");
    ensure!(!html.contains("<!--vramscope-trace-->"));
    Ok(())
}

#[test]
fn a_stripped_copy_has_the_same_memory_and_no_names() -> Result<()> {
    let folder = Folder::new("strip")?;
    let (sample, copy) = (folder.join("sample.pickle"), folder.join("copy.vramscope"));
    fs::write(&sample, vramscope::workloads::sample::snapshot())?;
    let [sample, copy] = [&sample, &copy].map(|path| path.to_string_lossy().into_owned());
    let preview = program::run(&["strip", &sample, "--preview"])?;
    let text = String::from_utf8_lossy(&preview.stdout);
    ensure!(preview.status.success() && text.contains("Users: none (was: ada)"), "{text}");
    ensure!(program::run(&["strip", &sample, "-o", &copy])?.status.success());
    let peaks = |path: &str| -> Result<_> {
        let report = json(&program::run(&["report", "--json", path])?.stdout)?;
        let device = &report["files"][0]["devices"][0];
        ensure!(device["peak"].is_object() && device["events"].is_object(), "no peak");
        Ok(["peak", "start", "end", "events", "unique_stacks"].map(|key| device[key].clone()))
    };
    assert_eq!(peaks(&copy)?, peaks(&sample)?);
    let told = program::run(&["report", &copy])?;
    ensure!(!String::from_utf8_lossy(&told.stdout).contains("/home/"), "a home folder is named");
    // Invalid options are refused with a reason, and no file is written.
    let other = folder.join("other.vramscope").to_string_lossy().into_owned();
    for (arguments, wanted) in
        [(vec!["--device", "7"], "there is no device 7"), (vec!["--window", "5:2"], "two numbers of events")]
    {
        let output = program::run(&[&["strip", &sample, "-o", &other][..], &arguments].concat())?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(2) && said.contains(wanted), "{arguments:?}: {said}");
    }
    ensure!(!Path::new(&other).exists() && fs::read_dir(&*folder)?.count() == 2);
    Ok(())
}
