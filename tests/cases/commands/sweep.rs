//! Sweeps on the command line: one parameter after another value, and the largest that fits.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use format::sweep::read;
use serde_json::{Value, json};
use tests::{Folder, program};

fn sweep(arguments: &[&str]) -> Result<Value> {
    let arguments = [&["sweep"], arguments, &["--json"]].concat();
    let output = program::run(&arguments)?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).with_context(|| format!("{arguments:?}"))
}

/// Runs a workload by itself, and returns its peaks, retries and out-of-memory errors.
fn alone(arguments: &[&str]) -> Result<[Value; 4]> {
    let output = program::run(&[&["run"], arguments, &["--json"]].concat())?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    Ok(["/reserved/peak", "/allocated/peak", "/num_alloc_retries", "/num_ooms"]
        .map(|path| report.pointer(path).cloned().unwrap_or_default()))
}

fn measured(row: &Value) -> [Value; 4] {
    ["peak_reserved", "peak_allocated", "retries", "ooms"].map(|name| row[name].clone())
}

#[test]
fn each_value_of_a_sweep_is_a_run() -> Result<()> {
    let found = sweep(&["resnet-sweep", "batch=64..512", "image=192", "--conf", "expandable_segments:True"])?;
    let rows = found["runs"].as_array().context("no runs")?;
    let values: Vec<&str> = rows.iter().filter_map(|row| row["value"].as_str()).collect();
    assert_eq!(values, ["64", "128", "256", "512"]);
    assert_eq!(found["choices"], json!({"first": "32", "more": "32", "image": "192", "precision": "fp32"}));
    for row in rows {
        let batch = format!("batch={}", row["value"].as_str().unwrap_or_default());
        let own = alone(&["resnet-sweep", &batch, "image=192", "--conf", "expandable_segments:True"])?;
        assert_eq!(measured(row), own, "{batch}");
        assert_eq!(row["fits"], row["ooms"] == 0, "{row}");
    }
    Ok(())
}

#[test]
fn the_largest_value_fits_and_the_next_one_does_not() -> Result<()> {
    // What is swept, another parameter, the options of the device, and the step.
    let cases: [([&str; 2], &str, &[&str], u64); 4] = [
        (["resnet-sweep", "batch=64..512"], "image=224", &[], 1),
        (["transformer", "batch=1..64"], "dropout=no", &["--card", "h100-80gb"], 1),
        (["transformer", "seq=512..16384:256"], "checkpoint=full", &["--capacity", "40GiB"], 256),
        (["transformer", "hidden=1024..8192:128"], "batch=1", &[], 128),
    ];
    for (swept, other, device, step) in cases {
        let found = sweep(&[&swept, &[other, "--steps", "2"][..], device].concat())?;
        let largest = &found["largest"];
        assert_eq!(largest["found"], "between", "{swept:?}: {largest}");
        let (fits, fails) = (&largest["fits"], &largest["fails"]);
        let value = |row: &Value| row["value"].as_str().map(str::to_owned).context("no value");
        assert_eq!(value(fits)?.parse::<u64>()? + step, value(fails)?.parse::<u64>()?, "{swept:?}");
        // Both sides as runs of their own.
        let (story, param) = (swept[0], found["param"].as_str().context("no parameter")?);
        let capacity = found["capacity_bytes"].to_string();
        for (row, has_failed) in [(fits, false), (fails, true)] {
            let choice = format!("{param}={}", value(row)?);
            let own = alone(&[story, &choice, other, "--steps", "2", "--capacity", &capacity])?;
            assert_eq!(measured(row), own, "{swept:?} {choice}");
            assert_eq!(own[3].as_u64() > Some(0), has_failed, "{swept:?} {choice}");
        }
    }
    Ok(())
}

#[test]
fn the_document_is_what_is_printed_and_its_line_repeats_a_run() -> Result<()> {
    let folder = Folder::new("sweep")?;
    let file = folder.join("sweep.json").display().to_string();
    let conf = "roundup_power2_divisions:[256:1,>:2],expandable_segments:True";
    let swept = ["resnet-sweep", "batch=60..500", "image=192", "--card", "a100-40gb", "--steps", "3", "--seed", "4"];
    let options = [&swept[..], &["--torch", "2.6", "--conf", conf]].concat();
    let output = program::run(&[&["sweep"], &options[..], &["--out", &file]].concat())?;
    let said = String::from_utf8(output.stdout)?;
    let line = format!("\nWrote {file}: 2.");
    assert!(said.contains(&line) && said.ends_with("drop it on the page that vramscope serve shows.\n"), "{said}");

    let text = std::fs::read_to_string(&file)?;
    let printed = program::run(&[&["sweep"], &options[..], &["--json"]].concat())?;
    assert_eq!(text, String::from_utf8(printed.stdout)?);
    assert!(text.starts_with("{\n  \"format\": \"vramscope sweep 1\",\n  \"story\": \"resnet-sweep\""), "{text}");
    let document = read(text.as_bytes())?;
    assert!(said.contains(&document.verdict().context("no verdict")?), "{said}");
    // The line is what a shell makes of it.
    for run in document.all_runs() {
        let line = document.command(&run.value).replacen("vramscope", "\"$PROGRAM\"", 1) + " --json";
        let shell =
            Command::new("sh").args(["-c", &line]).env("PROGRAM", program::path()?).output().context("starting sh")?;
        let report: Value = serde_json::from_slice(&shell.stdout).with_context(|| line.clone())?;
        let peaks = [&report["reserved"]["peak"], &report["allocated"]["peak"]].map(Value::as_u64);
        assert_eq!(peaks, [Some(run.peak_reserved), Some(run.peak_allocated)], "{line}");
        assert_eq!(report["num_ooms"], run.ooms, "{line}");
    }

    // What exists is kept, and nothing runs for a file that can't be written.
    let elsewhere = folder.join("none").join("sweep.json").display().to_string();
    for (out, want) in [
        (file.as_str(), "sweep.json exists already. Replace it with --force, or name another file with --out."),
        ("sweep.txt", "the result is JSON. End the name sweep.txt with .json."),
        (&elsewhere, "none. Make it, or name another file."),
    ] {
        let output = program::run(&["sweep", "transformer", "batch=1..2", "--out", out])?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{out}: {errors}");
        assert!(errors.contains(want) && errors.lines().count() == 1, "{out}: {errors}");
    }
    assert_eq!(std::fs::read_to_string(&file)?, text);
    let forced = program::run(&["sweep", "transformer", "batch=1..2", "--steps", "1", "--out", &file, "--force"])?;
    assert!(forced.status.success() && std::fs::read_to_string(&file)? != text, "{forced:?}");
    assert_eq!(std::fs::read_dir(&*folder)?.count(), 1);

    // A command that reads traces says what it is.
    let output = program::run(&["report", &file])?;
    let errors = String::from_utf8(output.stderr)?;
    assert!(errors.contains("This is a sweep, not a memory snapshot. Open it in the page"), "{errors}");
    assert_eq!(output.status.code(), Some(2));
    Ok(())
}

#[test]
fn a_range_that_fits_wholly_or_not_at_all_says_so() -> Result<()> {
    let found = sweep(&["transformer", "batch=1..2", "--steps", "2"])?;
    assert_eq!(found["largest"]["found"], "beyond");
    let found = sweep(&["transformer", "batch=1..2", "--steps", "2", "--capacity", "8GiB"])?;
    assert_eq!(found["largest"]["found"], "below");
    // Words have no order.
    let found = sweep(&["checkpoint-save", "copy=whole,tensor,pinned", "--capacity", "22GiB"])?;
    assert_eq!(found["largest"], Value::Null);
    let fits: Vec<&Value> = found["runs"].as_array().context("no runs")?.iter().map(|row| &row["fits"]).collect();
    assert_eq!(fits, [&json!(false), &json!(true), &json!(true)]);
    let text = String::from_utf8(program::run(&["sweep", "transformer", "batch=4..8", "--steps", "2"])?.stdout)?;
    for part in ["  batch  peak reserved", "The largest batch that fits is 5: ", "With 6, a request of "] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_swept_is_refused_in_one_line() -> Result<()> {
    let cases: &[(&[&str], &str)] = &[
        (&["nope", "a=1..2"], "There is no workload \"nope\". Name one of: transformer"),
        (&["leak", "depth=1..2"], "leak: there is no parameter \"depth\". Parameters: kept."),
        (&["sample", "batch=1..2"], "Parameters: none."),
        (&["leak", "kept"], "is no range. Write it like batch=64..512"),
        (&["leak", "kept=9..1"], "is an empty range"),
        (&["leak", "kept=1..4000:1"], "a sweep runs at most 256. Write a larger step."),
        (&["leak", "kept=1..9999"], "kept cannot be \"8192\". Permitted: 1 to 4096"),
        (&["leak", "kept=1..2:0"], "Write a larger step"),
        (&["leak", "kept=one..two"], "is not a number of kept"),
        (&["leak", "kept=1..2", "kept"], "has no value. Write it as NAME=VALUE"),
        (&["transformer", "hidden=64..100:9"], "must be a multiple of heads"),
        (&["transformer", "batch=1..2", "--card", "Z9000"], "There is no card \"Z9000\" in the list. Known: T4-16GB"),
        (&["transformer", "batch=1..2", "--capacity", "much"], "not an amount of memory"),
        (&["transformer", "batch=1..2", "--conf", "nonsense:1"], "--conf \"nonsense:1\""),
    ];
    for (arguments, want) in cases {
        let output = program::run(&[&["sweep"], *arguments].concat())?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(want) && errors.lines().count() == 1, "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    Ok(())
}
