//! `vramscope plan` on the command line: what it promises beside what really comes of it, and the errors.

use anyhow::{Context, Result};
use serde_json::Value;
use tests::{Folder, program, workspace};

/// Runs a workload for three steps with enough memory; returns the file.
fn recorded(folder: &Folder, name: &str, options: &[&str]) -> Result<String> {
    let file = folder.join(name).to_str().context("a path")?.to_owned();
    let steps = ["--steps", "3", "--capacity", "100GiB", "--out", &file];
    let output = program::run(&[&["run", "transformer"], options, &steps].concat())?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(file)
}

fn json(arguments: &[&str], code: i32) -> Result<Value> {
    let output = program::run(&[arguments, &["--json"]].concat())?;
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The plan for a run, beside the same run that really checkpoints: a plan promises what comes of it, to the byte.
#[test]
fn what_checkpointing_saves_is_what_really_comes_of_it() -> Result<()> {
    let folder = Folder::new("plan")?;
    for (number, options) in [
        &["layers=8", "batch=4"][..],
        &["layers=8", "batch=2", "attention=plain", "dropout=yes"],
        &["layers=12", "batch=8", "hidden=1024", "precision=fp32", "optimizer=sgd"],
    ]
    .into_iter()
    .enumerate()
    {
        let plain = recorded(&folder, &format!("plain{number}.vramscope"), options)?;
        let full = recorded(&folder, &format!("full{number}.vramscope"), &[options, &["checkpoint=full"]].concat())?;
        let real = &json(&["whatif", &full], 0)?["runs"][0];
        let planned = json(&["plan", &plain, "--save", "1TiB"], 1)?;
        let is_it = |measure: &&Value| {
            measure["kind"] == "checkpoint"
                && measure["what"].as_str().is_some_and(|what| what.ends_with(" model.py:192"))
        };
        let measure = planned["candidates"].as_array().context("a list")?.iter().find(is_it).context("the layers")?;
        assert_eq!(measure["calls"], measure["of_calls"]);
        for (before, saved, peak) in
            [("reserved", "saved_reserved", "peak_reserved"), ("allocated", "saved_allocated", "peak_allocated")]
        {
            let promised =
                planned["before"][before].as_u64().zip(measure[saved].as_u64()).map(|(all, saved)| all - saved);
            assert_eq!(promised, real[peak].as_u64(), "{options:?}: {before}");
        }
    }
    Ok(())
}

#[test]
fn a_plan_reaches_its_goal_with_lines_to_paste() -> Result<()> {
    let folder = Folder::new("plan")?;
    let file = recorded(&folder, "run.vramscope", &["layers=8", "batch=8", "hidden=1024"])?;
    let gib = |bytes: &Value| bytes.as_f64().map(|bytes| bytes / f64::from(1 << 30));
    for (goal, size) in [("--save", "1GiB"), ("--save", "3GiB"), ("--fit", "10GiB")] {
        let planned = json(&["plan", &file, goal, size], 0)?;
        assert_eq!((&planned["is_reached"], &planned["missing_bytes"]), (&true.into(), &0.into()), "{planned}");
        let (before, after) = (gib(&planned["before"]["reserved"]), gib(&planned["after"]["reserved"]));
        let saved = before.zip(after).map(|(before, after)| before - after);
        let is_enough = if goal == "--fit" { after < Some(10.0) } else { saved >= size[..1].parse().ok() };
        assert!(is_enough && !planned["measures"].as_array().context("a list")?.is_empty(), "{goal} {size}: {planned}");
        let check = &planned["selfcheck"];
        assert!(check["requests"].as_u64() > Some(0) && check["equal"] == check["requests"], "{check}");
    }
    let text = |arguments: &[&str]| -> Result<String> {
        Ok(String::from_utf8(program::run(&[&["plan", &file], arguments].concat())?.stdout)?)
    };
    let brief = text(&["--save", "1GiB"])?;
    assert!(brief.starts_with("SAVES ") && brief.contains(" reserved: needs "), "{brief}");
    for words in [
        "  x = checkpoint(layer, x, use_reentrant=False)",
        "of the forward pass again",
        "allocator, request by request",
    ] {
        assert!(brief.contains(words), "{words}: {brief}");
    }
    assert!(
        !brief.contains("Each by itself:") && text(&["--save", "1GiB", "-v"])?.contains("Each by itself:"),
        "{brief}"
    );
    // All that can be done, and more than that.
    let short = text(&["--save", "500GiB"])?;
    assert!(
        short.starts_with("FALLS SHORT of saving 500 GiB by ") && short.contains("the plan that was found saves"),
        "{short}"
    );
    assert!(text(&["--fit", "A100-80GB"])?.starts_with("FITS 78.6 GiB as it is: reserves "));
    Ok(())
}

/// What a run that failed needs after its failure is not in its recording.
#[test]
fn a_run_that_failed_is_planned_up_to_its_failure() -> Result<()> {
    let folder = Folder::new("plan")?;
    for (number, batch, words) in [
        (0, "batch=12", "! A request failed in the recording. The plan is counted up to there"),
        // In the first forward pass.
        (1, "batch=24", "! The recording ends before the first backward pass."),
    ] {
        let file = folder.join(format!("oom{number}.vramscope"));
        let file = file.to_str().context("a path")?;
        let run = ["run", "transformer", "layers=24", batch, "--steps", "3", "--capacity", "60GiB", "--out", file];
        program::run(&run)?;
        let output = program::run(&["plan", file, "--fit", "60GiB"])?;
        let text = String::from_utf8(output.stdout)?;
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(
            text.starts_with("PASSES the request that failed in the recording, with this plan, in 60.0 GiB: "),
            "{text}"
        );
        assert!(text.contains(words), "{text}");
    }
    Ok(())
}

#[test]
fn what_a_recording_lacks_is_said_with_how_to_record_it() -> Result<()> {
    let folder = Folder::new("plan")?;
    let file = folder.join("serving.vramscope");
    let file = file.to_str().context("a path")?;
    program::run(&["run", "alternating", "--steps", "3", "--out", file])?;
    let output = program::run(&["plan", file, "--save", "1GiB"])?;
    let text = String::from_utf8(output.stdout)?;
    assert_eq!(output.status.code(), Some(1), "{text}");
    for words in ["FALLS SHORT of saving 1.00 GiB", "nothing was found", "! The recording has no backward pass. "] {
        assert!(text.contains(words), "{words}: {text}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_planned_is_said() -> Result<()> {
    let folder = Folder::new("plan")?;
    let text = folder.join("text.pickle");
    std::fs::write(&text, "not a trace")?;
    let bare = workspace("tests/fixtures/no_history.pickle");
    let file = workspace("tests/fixtures/ring.pickle");
    let [file, text, bare] = [&file, &text, &bare].map(|path| path.to_str().unwrap());
    for (arguments, words) in [
        (vec![text, "--save", "1GiB"], "text.pickle"),
        (vec!["no-such-file", "--save", "1GiB"], "There is no such file. Check the path."),
        (vec![bare, "--save", "1GiB"], "The trace has no request for memory"),
        (vec![file], "Say what to reach: --save 12GiB, or --fit A100-40GB."),
        (vec![file, "--save", "0"], "--save: \"0\" is not an amount of memory"),
        (vec![file, "--save", "-1GiB"], "is not an amount of memory"),
        (vec![file, "--save", "12"], "\"12\" is a number of bytes. Write it with a unit, like 12GiB."),
        (vec![file, "--save", "1GiB", "--fit", "8GiB"], "cannot be used with"),
        (vec![file, "--fit", "a100"], "\"a100\" may be A100-40GB or A100-80GB. Name one of them."),
        (vec![file, "--fit", "Z9000"], "Or give a size, such as 40GiB."),
        (vec![file, "--fit", "9XB"], "--fit: \"9XB\" is not an amount of memory"),
        (vec![file, "--save", "1GiB", "--device", "7"], "There is no device 7"),
        (vec![file, "--save", "1GiB", "--torch", "old"], "Unknown torch release"),
    ] {
        let output = program::run(&[&["plan"], arguments.as_slice()].concat())?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
    Ok(())
}
