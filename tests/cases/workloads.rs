//! Workloads and budgets on the command line: the outcome of each workload, the files they write, and errors.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use shared::units::Bytes;
use tests::{Folder, program, workspace};

/// Runs the program with `--json` and returns what it printed.
fn printed(arguments: &[&str]) -> Result<Value> {
    let output = program::run(&[arguments, &["--json"]].concat())?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(0), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).with_context(|| format!("{arguments:?}"))
}

fn run(arguments: &[&str]) -> Result<Value> {
    printed(&[&["run"], arguments].concat())
}

/// Bytes of a field such as `/reserved/peak`.
fn bytes(report: &Value, path: &str) -> u64 {
    report.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} is not a number"))
}

#[test]
fn each_workload_ends_as_described() -> Result<()> {
    // The cause, and whether an error ended the run.
    let cases: &[(&[&str], &str, bool)] = &[
        (&["transformer"], "none", false),
        (&["resnet-sweep"], "full", true),
        (&["variable-length"], "fragmented", true),
        (&["variable-length", "--conf", "expandable_segments:True"], "none", false),
        (&["variable-length", "lengths=padded", "--steps", "8"], "none", false),
        (&["alternating"], "fragmented", true),
        (&["leak"], "leak", true),
        (&["leak", "--steps", "60"], "growth", false),
        (&["checkpoint-save"], "none", false),
        (&["model-switch"], "retries", false),
        (
            &["variable-length", "--steps", "9", "--conf", "max_split_size_mb:200,expandable_segments:True"],
            "retries",
            false,
        ),
        (&["model-switch", "empty-cache=yes"], "none", false),
        (&["recovery"], "full", false),
        (&["kv-serving", "--steps", "60"], "full", false),
        // A program that only sets up grows, but does not leak.
        (&["kv-serving", "--steps", "9", "--capacity", "24GiB"], "full", true),
        (&["alternating", "block=1024", "large=1"], "full", false),
        (&["leak", "--steps", "2", "--capacity", "1MiB"], "full", true),
    ];
    for (arguments, cause, has_failed) in cases {
        let report = run(arguments)?;
        assert_eq!(report["cause"]["kind"], *cause, "{arguments:?}: {}", report["cause"]["message"]);
        assert_eq!(!report["error"].is_null(), *has_failed, "{arguments:?}: {}", report["error"]);
        // The report of the trace agrees with the allocator's counters.
        let end = &report["trace"]["devices"][0]["end"];
        for (counted, found) in [("/allocated/now", "allocated_bytes"), ("/reserved/now", "reserved_bytes")] {
            assert_eq!(Some(bytes(&report, counted)), end[found].as_u64(), "{arguments:?} {counted}");
        }
        let peak = &report["trace"]["devices"][0]["peak"]["requested_bytes"];
        assert_eq!(peak.as_u64(), Some(bytes(&report, "/requested/peak")), "{arguments:?}");
        let findings = report["trace"]["findings"].as_array().context("no findings")?;
        assert!(findings.iter().all(|finding| finding["code"] == "out_of_memory"), "{arguments:?}: {findings:?}");
        assert_eq!(findings.is_empty(), report["num_ooms"] == 0, "{arguments:?}");
        assert!(bytes(&report, "/reserved/peak") <= bytes(&report, "/capacity_bytes"), "{arguments:?}");
        // The verdict, which follows from the trace, agrees with the allocator's counters.
        let message = report["cause"]["message"].as_str().context("no message")?;
        let [reserved, allocated] = ["/reserved/peak", "/allocated/peak"].map(|path| Bytes(bytes(&report, path)));
        match *cause {
            "retries" => {
                let retries = format!("Tight: {} request", report["num_alloc_retries"]);
                assert!(message.starts_with(&retries), "{arguments:?}: {message}");
            }
            "none" => {
                assert!(message.starts_with(&format!("Nothing failed: at most {reserved} of ")), "{message}");
                assert!(message.ends_with(&format!(" was reserved, and at most {allocated} was in use.")), "{message}");
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn choices_have_their_effect() -> Result<()> {
    let peak = |arguments: &[&str]| run(arguments).map(|report| bytes(&report, "/allocated/peak"));
    let whole = peak(&["transformer", "--steps", "2"])?;
    assert!(peak(&["transformer", "--steps", "2", "checkpoint=4"])? < whole);
    assert!(peak(&["transformer", "--steps", "2", "batch=8", "--capacity", "80GiB"])? > whole);
    assert!(peak(&["transformer", "--steps", "2", "optimizer=sgd"])? < whole);
    // Copying a whole checkpoint at once holds weights and state twice.
    let twice = peak(&["checkpoint-save"])?;
    assert!(twice > peak(&["checkpoint-save", "copy=tensor"])? * 5 / 4);
    // Each model may have a private pool.
    let pools = run(&["kv-serving", "private-pools=yes", "--steps", "9"])?;
    assert!(bytes(&pools, "/reserved/peak") > 0);
    Ok(())
}

#[test]
fn a_run_is_reproducible_and_its_file_can_be_read() -> Result<()> {
    let folder = Folder::new("run")?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (first, second, other) = (file("a.pickle"), file("b.pickle"), file("c.pickle"));
    for (path, seed) in [(&first, "7"), (&second, "7"), (&other, "8")] {
        run(&["variable-length", "--steps", "3", "--seed", seed, "--out", path])?;
    }
    assert!(fs::read(&first)? == fs::read(&second)?);
    assert!(fs::read(&first)? != fs::read(&other)?);

    let consistent = Command::new("python3").arg(workspace("tests/cases/consistent.py")).arg(&first).output()?;
    ensure!(consistent.status.success(), "{}", String::from_utf8_lossy(&consistent.stderr));
    let report = printed(&["report", &first])?;
    assert_eq!(report["files"][0]["findings"], serde_json::json!([]));
    let ran = run(&["variable-length", "--steps", "3", "--seed", "7"])?;
    assert_eq!(report["files"][0]["devices"], ran["trace"]["devices"]);
    Ok(())
}

#[test]
fn a_recording_and_a_snapshot_of_a_run_agree() -> Result<()> {
    let folder = Folder::new("recorded")?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    // Spans; several streams and an error; pools; expandable segments.
    let cases: &[&[&str]] = &[
        &["transformer", "--steps", "2"],
        &["sample"],
        &["kv-serving", "private-pools=yes", "--steps", "9", "--torch", "2.15"],
        &["resnet-sweep", "--conf", "expandable_segments:True", "--torch", "2.6"],
    ];
    for arguments in cases {
        let (snapshot, recording) = (file("a.pickle"), file("a.vramscope"));
        let ran = run(&[arguments, &["--out", snapshot.as_str()][..]].concat())?;
        let again = run(&[arguments, &["--out", recording.as_str()][..]].concat())?;
        assert_eq!(ran, again, "{arguments:?}");
        let report = printed(&["report", &snapshot, &recording])?;
        let [snapshot, recording] = [&report["files"][0], &report["files"][1]];
        assert_eq!(snapshot["devices"], recording["devices"], "{arguments:?}");
        assert_eq!(snapshot["findings"], recording["findings"], "{arguments:?}");
    }
    Ok(())
}

#[test]
fn a_run_that_is_killed_leaves_its_recording() -> Result<()> {
    let folder = Folder::new("killed")?;
    let path = folder.join("a.vramscope");
    let arguments = ["run", "transformer", "--steps", "100000", "--out"];
    let mut running = Command::new(program::path()?).args(arguments).arg(&path).stdout(Stdio::null()).spawn()?;
    let has_enough = || fs::metadata(&path).is_ok_and(|file| file.len() > 200_000);
    let began = Instant::now();
    while !has_enough() && began.elapsed() < Duration::from_secs(60) && running.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.kill()?;
    ensure!(running.wait()?.code().is_none(), "it ended before it was killed");
    let report = printed(&["report", &path.to_string_lossy()])?;
    let file = &report["files"][0];
    assert_eq!(file["findings"][0]["code"], "truncated", "{}", file["findings"]);
    let events = file["devices"][0]["events"].as_object().context("no events")?;
    assert!(events.values().filter_map(Value::as_u64).sum::<u64>() > 20_000, "{events:?}");
    Ok(())
}

#[test]
fn the_list_names_every_workload_and_parameter() -> Result<()> {
    let workloads = run(&["--list"])?;
    let workloads = workloads["workloads"].as_array().context("no workloads")?;
    assert!(workloads.len() >= 10);
    let text = String::from_utf8(program::run(&["run", "--list"])?.stdout)?;
    for workload in workloads {
        let name = workload["name"].as_str().context("no name")?;
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}");
        for param in workload["params"].as_array().into_iter().flatten() {
            let choice =
                format!("{}={}", param["name"].as_str().unwrap_or(""), param["default"].as_str().unwrap_or(""));
            assert!(text.contains(&choice), "{choice}");
        }
    }
    Ok(())
}

#[test]
fn invalid_arguments_are_refused_in_one_line() -> Result<()> {
    let cases: &[(&[&str], &str)] = &[
        (&["run"], "Name a workload: "),
        (&["run", "nope"], "There is no workload \"nope\""),
        (&["run", "leak", "kept=none"], "kept cannot be \"none\""),
        (&["run", "leak", "depth=3"], "there is no parameter \"depth\""),
        (&["run", "leak", "quickly"], "Write it as NAME=VALUE"),
        (&["run", "leak", "--capacity", "0"], "not an amount of memory"),
        (&["run", "leak", "--capacity", "2TiB"], "not an amount of memory"),
        (&["run", "leak", "--conf", "max_split_size_mb:1"], "max_split_size_mb"),
        (&["run", "leak", "--conf", "nonsense:1"], "--conf \"nonsense:1\""),
        (&["run", "leak", "--torch", "1.9"], "Unknown torch release"),
        (&["run", "leak", "--out", "trace.txt"], "unknown kind of file"),
        (&["run", "leak", "--out", "/nowhere/at/all.pickle"], "can't be written"),
        (&["run", "leak", "--out", "/nowhere/at/all.vramscope"], "can't be written"),
        (&["run", "transformer", "hidden=100", "heads=7"], "must be a multiple of heads"),
        (&["budget", "--heads", "5"], "must be a multiple of heads"),
        (&["budget", "--layers", "0"], "layers must be between 1 and"),
        (&["budget", "--params", "nan"], "not a number of weights"),
        (&["budget", "--checkpoint", "every-x"], "Write none, full or every-4"),
        (&["budget", "--checkpoint", "every-0"], "checkpoint must be between 1 and"),
        (&["budget", "--simulate", "--optimizer", "none"], "vramscope run kv-serving"),
    ];
    for (arguments, want) in cases {
        let output = program::run(arguments)?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(want) && errors.lines().count() == 1, "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    Ok(())
}

#[test]
fn a_plan_agrees_with_its_simulation() -> Result<()> {
    let small =
        ["budget", "--layers", "4", "--hidden", "512", "--heads", "8", "--seq", "256", "--batch", "2", "--simulate"];
    let cases: &[&[&str]] = &[
        &[],
        &["--precision", "fp32", "--optimizer", "sgd"],
        &["--precision", "bf16", "--attention", "plain", "--dropout"],
        &["--checkpoint", "full"],
        &["--checkpoint", "every-3", "--kv-heads", "2", "--ffn", "1000"],
    ];
    for more in cases {
        let printed = printed(&[&small, *more].concat())?;
        let parts = printed["simulation"]["parts"].as_array().context("no parts")?;
        for part in parts.iter().filter(|part| part["planned_bytes"].as_u64() > Some(0)) {
            // Formulas leave out the norms' statistics, and the last norm is freed before a segment is recomputed.
            let ratio = part["ratio"].as_f64().context("no ratio")?;
            assert!((0.95..1.05).contains(&ratio), "{more:?} {part}");
        }
        assert!(parts.iter().any(|part| part["part"] == "gradients"), "{more:?}");
        let ratio = printed["simulation"]["ratio"].as_f64().context("no ratio")?;
        assert!((0.95..1.3).contains(&ratio), "{more:?} {ratio}");
    }
    // The text names every formula with its source.
    let text = String::from_utf8(program::run(&["budget", "--params", "7e9", "--kv", "4096"])?.stdout)?;
    for word in ["P = 7,000,000,000", "ZeRO", "Korthikanti", "KV cache", "<- peak", "16h + 4f"] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    Ok(())
}

#[test]
fn a_run_warns_when_cached_memory_becomes_unusable() -> Result<()> {
    let warnings = |arguments: &[&str]| -> Result<Vec<String>> {
        let output = program::run(&[&["run"], arguments].concat())?;
        let errors = String::from_utf8(output.stderr)?;
        Ok(errors.lines().filter(|line| line.starts_with("Warning: ")).map(str::to_owned).collect())
    };
    // Every other of its blocks is freed, and expandable segments don't help.
    let found = warnings(&["alternating", "--warn-at", "0.3"])?;
    let want = "Warning: 99 % of the cached memory is unusable: of 4.00 GiB cached (7.99 GiB reserved), the largest request \
                that fits has 4.00 MiB. 4.00 GiB are gaps in segments that are in use, 0 B are whole segments. Try \
                PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.";
    assert_eq!(found, [want]);
    let found = warnings(&["alternating", "--warn-at", "0.3", "--conf", "expandable_segments:True"])?;
    ensure!(matches!(&found[..], [line] if line.ends_with("what lives long before what lives short.")), "{found:?}");
    // It frees all of a model before the next one: whole segments.
    let found = warnings(&["model-switch", "--warn-at", "0.9"])?;
    ensure!(found.first().is_some_and(|line| line.contains("Try torch.cuda.empty_cache()")), "{found:?}");
    // Nothing is said without the option, or below the threshold.
    assert_eq!(warnings(&["alternating"])?, Vec::<String>::new());
    assert_eq!(warnings(&["leak", "--warn-at", "0.9"])?, Vec::<String>::new());
    for share in ["0", "1", "30%"] {
        let output = program::run(&["run", "alternating", "--warn-at", share])?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(2) && errors.contains("such as 0.3"), "{share}: {errors}");
    }
    Ok(())
}
