//! `vramscope curves` on the command line: its rows against the report, and its errors.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;
use tests::{Folder, program, workspace};

const HEADER: &str = "event,time_us,requested,allocated,active,reserved,inactive_split,cached_whole,rounding,largest_gap,\
    largest_servable_small,largest_servable_large,gaps";

/// Runs `curves` on a file, and returns its rows as numbers.
fn rows(file: &str, arguments: &[&str]) -> Result<Vec<Vec<i64>>> {
    let output = program::run(&[&["curves", file], arguments].concat())?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEADER));
    let numbers = |line: &str| line.split(',').map(str::parse).collect::<Result<Vec<i64>, _>>();
    Ok(lines.map(numbers).collect::<Result<_, _>>()?)
}

fn column(rows: &[Vec<i64>], name: &str) -> Vec<i64> {
    let place = HEADER.split(',').position(|known| known == name).unwrap();
    rows.iter().map(|row| row[place]).collect()
}

/// Writes the sample, and returns its path with its report.
fn sample(folder: &Folder) -> Result<(String, Value)> {
    let path = folder.join("sample.pickle");
    fs::write(&path, vramscope::workloads::sample::snapshot())?;
    let path = path.to_str().context("a path without a name")?.to_owned();
    let report = program::run(&["report", "--json", &path])?;
    Ok((path, serde_json::from_slice(&report.stdout)?))
}

#[test]
fn the_rows_agree_with_the_report() -> Result<()> {
    let folder = Folder::new("curves")?;
    let (path, report) = sample(&folder)?;
    let device = &report["files"][0]["devices"][0];
    let rows = rows(&path, &[])?;
    let events: i64 = device["events"].as_object().context("no events")?.values().filter_map(Value::as_i64).sum();
    assert_eq!(rows.len() as i64, events + 1);
    assert!(column(&rows, "event").into_iter().eq(0..=events));
    // The peak: its bytes, its event, its time.
    let requested = column(&rows, "requested");
    let peak = (0..requested.len()).rev().max_by_key(|&i| requested[i]).context("no rows")?;
    assert_eq!(device["peak"]["requested_bytes"], requested[peak]);
    assert_eq!(device["peak"]["event"], peak);
    assert_eq!(device["peak"]["time_us"], rows[peak][1]);
    let end = rows.last().context("no rows")?;
    for (name, place) in [("allocated_bytes", 3), ("active_bytes", 4), ("reserved_bytes", 5)] {
        assert_eq!(device["end"][name], end[place], "{name}");
    }
    let [active, reserved, split, whole] =
        ["active", "reserved", "inactive_split", "cached_whole"].map(|name| column(&rows, name));
    for i in 0..rows.len() {
        assert_eq!(split[i] + whole[i], reserved[i] - active[i], "at {i}");
    }
    Ok(())
}

#[test]
fn a_part_of_the_rows_is_the_same_rows() -> Result<()> {
    let folder = Folder::new("curves_part")?;
    let (path, _) = sample(&folder)?;
    let all = rows(&path, &[])?;
    let end = all.len() - 1;
    assert_eq!(rows(&path, &["--from", "10", "--to", "20"])?, all[10..=20]);
    assert_eq!(rows(&path, &["--from", "7", "--to", "7", "--device", "0"])?, all[7..=7]);
    assert_eq!(rows(&path, &["--from", &end.to_string(), "--to", "4000000000"])?, all[end..]);
    let every = rows(&path, &["--every", "100", "--csv"])?;
    assert!(every.iter().eq(all.iter().step_by(100)));
    // The extremes of each hundred are rows of it, and have the smallest and largest value of each column.
    let extremes = rows(&path, &["--every", "100", "--extremes"])?;
    assert!(extremes.len() < all.len() / 3);
    for (i, hundred) in all.chunks(100).enumerate() {
        let of_these = |row: &&Vec<i64>| row[0] / 100 == i as i64;
        let found: Vec<Vec<i64>> = extremes.iter().filter(of_these).cloned().collect();
        assert!(found.iter().all(|row| hundred.contains(row)));
        for name in HEADER.split(',').skip(2) {
            let (found, want) = (column(&found, name), column(hundred, name));
            assert_eq!((found.iter().min(), found.iter().max()), (want.iter().min(), want.iter().max()), "{name}");
        }
    }
    // The same as JSON.
    let output = program::run(&["curves", &path, "--json", "--every", "100"])?;
    let json: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    assert_eq!(json.len(), every.len());
    for (object, row) in json.iter().zip(&every) {
        for (name, value) in HEADER.split(',').zip(row) {
            assert_eq!(object[name], *value, "{name}");
        }
    }
    Ok(())
}

#[test]
fn what_cannot_be_printed_is_said_in_one_line() -> Result<()> {
    let two = workspace("tests/fixtures/two_devices.pickle");
    let two = two.to_str().context("a path without a name")?;
    let cases: &[(&[&str], &str)] = &[
        (&["nothing.pickle"], "nothing.pickle: There is no such file."),
        (&[two, "--device", "7"], "There is no device 7. The file has: 0, 1."),
        (&[two, "--from", "4"], "--from 4 is behind the end: the device has 3 events."),
        (&[two, "--from", "2", "--to", "1"], "--to is before --from."),
    ];
    for (arguments, want) in cases {
        let output = program::run(&[&["curves"], *arguments].concat())?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{errors}");
        assert!(errors.contains(want) && errors.lines().count() == 1, "{errors}");
    }
    // Which device is meant is said where a file has several.
    let output = program::run(&["curves", two])?;
    let errors = String::from_utf8(output.stderr)?;
    assert!(errors.contains("has the devices 0, 1. These are the rows of device 0."), "{errors}");
    assert!(program::run(&["curves", two, "--device", "1"])?.stderr.is_empty());
    Ok(())
}

#[test]
fn a_reader_that_has_enough_ends_it_in_silence() -> Result<()> {
    let folder = Folder::new("curves_head")?;
    let (path, _) = sample(&folder)?;
    let mut command = Command::new(program::path()?);
    let mut child = command.args(["curves", &path]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::with_capacity(64, child.stdout.take().context("no output")?).read_line(&mut line)?;
    assert_eq!(line.trim_end(), HEADER);
    let output = child.wait_with_output()?;
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    Ok(())
}
