//! `vramscope replay` on the command line: its input, its output and its errors.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::{fs, thread};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::{Folder, program};

/// The address 0, which a request of 0 bytes gets, as an offset.
const NOWHERE: i64 = -0x6400_0000_0000;

/// Executes a script from standard input.
fn execute(script: &[u8], arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(program::path()?);
    command.args(["replay", "-"]).args(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let script = script.to_vec();
    // In a thread, so that a program that stops reading does not block the test.
    let writer = thread::spawn(move || drop(stdin.write_all(&script)));
    let output = child.wait_with_output()?;
    writer.join().ok();
    Ok(output)
}

#[test]
fn a_script_prints_the_address_of_each_allocation() -> Result<()> {
    let script = json!({
        "config": "max_split_size_mb:64",
        "capacity_bytes": 32 << 20,
        "ops": [
            ["malloc", "a", 1000, 0], ["malloc", "b", 30 << 20, 1], ["free", "a"], ["snapshot"], ["malloc", "c", 0, 0],
            ["malloc", "d", 64 << 20, 0], ["graph_end", "none"],
        ],
    });
    let output = execute(script.to_string().as_bytes(), &["--torch", "2.15"])?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(printed["torch"], "2.15");
    assert_eq!(printed["malloc"], json!([[0, 0], [1, 2 << 20], [4, NOWHERE], [5, null]]));
    assert_eq!(printed["snapshots"][0]["segments"][0]["blocks"], json!([[0, 2 << 20, 1000, "inactive"]]));
    assert_eq!(printed["final"]["stats"]["num_ooms"], 1);
    assert_eq!(printed["settings"]["max_split_size"], 64 << 20);
    let errors = printed["errors"].as_object().context("no errors")?;
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["5", "6"]);
    assert!(errors["5"].as_str().is_some_and(|text| text.contains("Tried to allocate 64.00 MiB")), "{errors:?}");
    Ok(())
}

#[test]
fn sizes_near_the_largest_number_are_refused_as_in_pytorch() -> Result<()> {
    let huge = [u64::MAX, u64::MAX - 511, 1 << 63, (1 << 63) - 1, (1 << 63) - 512, 1 << 62];
    for torch in ["2.6", "2.11", "2.15"] {
        for conf in ["", "expandable_segments:True", "roundup_power2_divisions:4", "max_split_size_mb:200"] {
            for capacity in [0, 1, 1 << 30, u64::MAX] {
                let ops: Vec<Value> = huge.iter().map(|size| json!(["malloc", "a", size, 0])).collect();
                let script = json!({ "config": conf, "capacity_bytes": capacity, "ops": ops });
                let output = execute(script.to_string().as_bytes(), &["--torch", torch])?;
                let name = format!("{torch} {conf} {capacity}");
                assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
                let printed: Value = serde_json::from_slice(&output.stdout)?;
                let errors = printed["errors"].as_object().context("no errors")?;
                // A device with unlimited memory may have room for the smallest of these sizes.
                let least = if capacity == u64::MAX { huge.len() - 1 } else { huge.len() };
                assert!(errors.len() >= least, "{name}: {errors:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_release_without_a_profile_uses_the_nearest_older_one_with_a_warning() -> Result<()> {
    let cases = [
        ("2.6", "2.6", ""),
        ("2.11.0+cu128", "2.11", ""),
        ("2.7.1", "2.7", ""),
        ("2.16", "2.15", "using 2.15, the nearest older one"),
        ("9.1", "2.15", "using 2.15"),
    ];
    for (torch, want, warning) in cases {
        let output = execute(b"{\"ops\":[]}", &["--torch", torch])?;
        let printed: Value = serde_json::from_slice(&output.stdout)?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!(printed["torch"], want, "{torch}");
        assert!(errors.contains(warning) && errors.is_empty() == warning.is_empty(), "{torch}: {errors}");
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() -> Result<()> {
    let mut command = Command::new(program::path()?);
    let full = fs::OpenOptions::new().write(true).open("/dev/full")?;
    let output = command.args(["budget", "--layers", "2"]).stdout(full).stderr(Stdio::piped()).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr)?.contains("Writing to standard output failed"));
    Ok(())
}

#[test]
fn invalid_scripts_are_refused_in_one_line() -> Result<()> {
    let folder = Folder::new("replay")?;
    let gzip = folder.join("cut.json.gz");
    fs::write(&gzip, [0x1f, 0x8b, 8, 0, 0])?;
    let gzip = gzip.to_string_lossy();
    let deep = format!("{{\"ops\":{}", "[".repeat(100_000));
    let cases: &[(&[u8], &[&str], &str)] = &[
        (b"", &[], "not JSON"),
        (b"\xff\xfe\x00", &[], "not JSON"),
        (b"{\"ops\":[[\"malloc\"]]}", &[], "operation 0 is [\"malloc\"], but expected"),
        (b"{\"ops\":[[\"malloc\",1,1.5,0]]}", &[], "operation 0"),
        (b"{\"ops\":[],\"config\":\"max_split_size_mb:1\"}", &[], "the settings are invalid: "),
        (b"{\"ops\":[],\"capacity_bytes\":1e99}", &[], "whole number of bytes"),
        (deep.as_bytes(), &[], "recursion limit"),
        (b"{\"ops\":[]}", &["--torch", "1.13"], "Unknown torch release"),
    ];
    let refused = |output: Output, want: &str| -> Result<()> {
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(2), "{want}: {errors}");
        assert!(errors.contains(want) && errors.lines().count() == 1, "{want}: {errors}");
        assert!(output.stdout.is_empty(), "{want}");
        Ok(())
    };
    for (script, arguments, want) in cases {
        refused(execute(script, arguments)?, want)?;
    }
    refused(program::run(&["replay", "/nowhere/at/all.json"])?, "can't be read")?;
    refused(program::run(&["replay", &gzip])?, "can't be read")?;
    Ok(())
}
