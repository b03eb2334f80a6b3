//! `vramscope whatif` on the command line: the self-check, the runs, and the errors.

use anyhow::Result;
use serde_json::Value;
use tests::{Folder, program, workspace};

#[test]
fn a_trace_comes_out_as_recorded_and_other_settings_come_out_otherwise() -> Result<()> {
    let folder = Folder::new("whatif")?;
    let file = folder.join("sample.pickle");
    std::fs::write(&file, vramscope::workloads::sample::snapshot())?;
    let file = file.to_str().unwrap();
    let output =
        program::run(&["whatif", file, "--conf", "expandable_segments:True", "--capacity", "80GiB", "--json"])?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let check = &answer["selfcheck"];
    assert!(check["requests"].as_u64() > Some(0) && check["equal"] == check["requests"], "{check}");
    assert_eq!(check["first_difference"], Value::Null);
    let [recorded, other] = answer["runs"].as_array().unwrap().as_slice() else { panic!("two runs: {answer}") };
    assert_eq!((&recorded["conf"], &other["conf"]), (&"".into(), &"expandable_segments:True".into()));
    for run in [recorded, other] {
        let bytes = |key: &str| run[key].as_u64().unwrap();
        assert!(
            bytes("peak_reserved") >= bytes("peak_active") && bytes("peak_active") >= bytes("peak_allocated"),
            "{run}"
        );
        assert!(bytes("smallest_capacity") > 0 && bytes("smallest_capacity").is_multiple_of(2 << 20), "{run}");
        // The sample ends with a request that failed. On this device it is served, and what would follow can't be told.
        assert_eq!((bytes("capacity"), &run["stopped_why"], bytes("ooms")), (80 << 30, &"served".into(), 0));
    }
    // On the device of the recording it fails again.
    let again: Value = serde_json::from_slice(&program::run(&["whatif", file, "--json"])?.stdout)?;
    let run = &again["runs"][0];
    assert!(run["ooms"].as_u64() > Some(0) && run["stopped_at"].is_null(), "{run}");
    assert!(run["capacity"].as_u64() < run["smallest_capacity"].as_u64(), "{run}");
    // The answer comes first, and the measures when they are asked for.
    let text = |options: &[&str]| -> Result<String> {
        Ok(String::from_utf8(program::run(&[&["whatif", file], options].concat())?.stdout)?)
    };
    let brief = text(&[])?;
    assert!(
        brief.starts_with("DOES NOT FIT under default settings: needs ") && !brief.contains("peak reserved"),
        "{brief}"
    );
    let fits = text(&["--capacity", "80GiB"])?;
    assert!(fits.starts_with("PASSES event "), "{fits}");
    let full = text(&["-v"])?;
    for words in
        ["replayed at their recorded address under the recorded settings", "peak reserved", "smallest capacity"]
    {
        assert!(full.contains(words), "{full}");
    }
    Ok(())
}

/// A device smaller than what was there at the start was said to serve the run.
#[test]
fn nothing_fits_below_what_was_there_at_the_start() -> Result<()> {
    let folder = Folder::new("start")?;
    let (file, part) = (folder.join("sample.pickle"), folder.join("part.vramscope"));
    std::fs::write(&file, vramscope::workloads::sample::snapshot())?;
    let [file, part] = [&file, &part].map(|path| path.to_str().unwrap());
    let stripped = program::run(&["strip", file, "-o", part, "--window", "20000:20400"])?;
    assert_eq!(stripped.status.code(), Some(0), "{}", String::from_utf8_lossy(&stripped.stderr));
    for command in ["whatif", "tune"] {
        let output = program::run(&[command, part, "--capacity", "64MiB", "--fail-on", "oom"]);
        let output = if command == "whatif" { output? } else { program::run(&[command, part, "--capacity", "64MiB"])? };
        let text = String::from_utf8(output.stdout)?;
        assert!(text.starts_with("DOES NOT FIT under default settings: needs "), "{command}: {text}");
        assert!(command != "whatif" || output.status.code() == Some(1), "{text}");
    }
    let answer: Value = serde_json::from_slice(&program::run(&["whatif", part, "--json"])?.stdout)?;
    let text = String::from_utf8(program::run(&["whatif", part])?.stdout)?;
    assert!(text.contains("was reserved before the first event"), "{text}");
    assert!(answer["runs"][0]["smallest_capacity"].as_u64() > Some(64 << 20), "{answer}");
    Ok(())
}

#[test]
fn a_run_is_written_as_a_recording_that_repeats_itself() -> Result<()> {
    let folder = Folder::new("whatif")?;
    let (file, run) = (folder.join("sample.pickle"), folder.join("run.vramscope"));
    std::fs::write(&file, vramscope::workloads::sample::snapshot())?;
    let (file, run) = (file.to_str().unwrap(), run.to_str().unwrap());
    let ask = |arguments: &[&str]| -> Result<Value> {
        Ok(serde_json::from_slice(&program::run(&[&["whatif", "--json"], arguments].concat())?.stdout)?)
    };
    let first = ask(&[file, "--conf", "expandable_segments:True", "--out", run])?;
    let again = ask(&[run])?;
    assert_eq!(again["selfcheck"]["equal"], again["selfcheck"]["requests"], "{again}");
    let (wanted, found) = (&first["runs"][1], &again["runs"][0]);
    for key in ["conf", "torch", "peak_reserved", "peak_active", "reserved_end", "device_allocs", "retries"] {
        assert_eq!(wanted[key], found[key], "{key}");
    }
    let text = String::from_utf8(program::run(&["whatif", file, "--out", run, "--force"])?.stdout)?;
    let end = format!("run.vramscope: the run under default settings.\n→ vramscope open {run}\n");
    assert!(text.ends_with(&end), "{text}");
    // Under the recorded settings it is the trace again, with its call sites.
    let report = |file: &str| -> Result<Value> {
        let said: Value = serde_json::from_slice(&program::run(&["report", "--json", file])?.stdout)?;
        Ok(said["files"][0]["devices"][0]["peak_stacks"][0]["stack"].clone())
    };
    let (old, new) = (report(file)?, report(run)?);
    assert!(old.as_array().is_some_and(|frames| !frames.is_empty()), "{old}");
    assert_eq!(old, new);
    Ok(())
}

#[test]
fn what_cannot_be_answered_is_said() -> Result<()> {
    let folder = Folder::new("whatif")?;
    let text = folder.join("text.pickle");
    std::fs::write(&text, "not a trace")?;
    let file = workspace("tests/fixtures/ring.pickle");
    let (file, text) = (file.to_str().unwrap(), text.to_str().unwrap());
    for (arguments, words) in [
        (vec![text], "text.pickle"),
        (vec!["no-such-file"], "There is no such file. Check the path."),
        (vec![file, "--card", "H100-80BG"], "in the list. Did you mean H100-80GB? Or give --capacity."),
        (vec![file, "--conf", "backend:cudaMallocAsync"], "is CUDA's own allocator, and this runs PyTorch's."),
        (vec![file, "--device", "7"], "There is no device 7"),
        (
            vec![file, "--conf", "max_split_size_mb:x"],
            "max_split_size_mb can't be \"x\". It takes a whole number of MiB",
        ),
        (vec![file, "--torch", "old"], "Unknown torch release"),
        (vec![file, "--capacity", "much"], "not an amount of memory"),
        (vec![file, "--card", "Z9000"], "There is no card \"Z9000\" in the list. Known: T4-16GB"),
        (vec![file, "--card", "a100"], "\"a100\" may be A100-40GB or A100-80GB. Name one of them."),
        (vec![file, "--capacity", "8"], "\"8\" is a number of bytes. Write it with a unit, like 8GiB."),
        (vec![file, "--fraction", "2"], "a share is more than 0 and at most 1"),
        (vec![file, "--out", "run.pickle"], "End the name run.pickle with .vramscope"),
        (vec![file, "--out", "no/such/folder/run.vramscope"], "can't be written"),
    ] {
        let output = program::run(&[&["whatif"], arguments.as_slice()].concat())?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
    Ok(())
}

#[test]
fn tuning_finds_what_would_have_saved_a_run() -> Result<()> {
    let folder = Folder::new("tune")?;
    let file = folder.join("a.pickle");
    let file = file.to_str().unwrap();
    program::run(&["run", "variable-length", "--steps", "200", "--capacity", "13GiB", "--out", file])?;
    let output = program::run(&["tune", file, "--goal", "fit", "--json"])?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let groups = answer["groups"].as_array().unwrap();
    let recorded: Vec<_> = groups.iter().filter(|group| group["is_recorded"] == true).collect();
    // As recorded it fails; what is recommended does not, and other ways of asking agree.
    assert!(recorded.len() == 1 && recorded[0]["outcome"]["ooms"].as_u64() > Some(0), "{recorded:?}");
    let conf = answer["advice"]["conf"].as_str().unwrap();
    assert_eq!(groups[0]["confs"][0], conf);
    let again = program::run(&["whatif", file, "--conf", conf, "--json"])?;
    let again: Value = serde_json::from_slice(&again.stdout)?;
    let outcome = &groups[0]["outcome"];
    assert_eq!(outcome["ooms"], 0);
    for key in ["peak_reserved", "device_allocs", "retries", "stopped_at"] {
        assert_eq!(again["runs"][1][key], outcome[key], "{key}");
    }
    assert!(outcome["peak_reserved"].as_u64() >= answer["bounds"]["exact_fit"].as_u64(), "{answer}");
    // The text has the line to paste and a table, or says that nothing can help.
    let text = String::from_utf8(program::run(&["tune", file, "--card", "h100"])?.stdout)?;
    assert!(text.starts_with("PASSES event ") && text.contains("PYTORCH_CUDA_ALLOC_CONF="), "{text}");
    assert!(text.contains("= as recorded"), "{text}");
    let text = String::from_utf8(program::run(&["tune", file, "--capacity", "100MiB"])?.stdout)?;
    assert!(text.starts_with("DOES NOT FIT") && text.contains("No setting helps: "), "{text}");
    // What fails is counted, and listed when it is asked for.
    assert!(text.contains("that fail: add -v") && text.matches("  yes  ").count() <= 1, "{text}");
    let text = String::from_utf8(program::run(&["tune", file, "--capacity", "100MiB", "-v"])?.stdout)?;
    assert!(text.matches("  yes  ").count() > 1, "{text}");
    Ok(())
}
