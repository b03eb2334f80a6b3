//! Workloads and budgets on the command line: the outcome of each workload, the files they write, and errors.

mod budget;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Folder, program, workspace};
use trace::units::Bytes;

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
    // The kind of the cause, whether an error ended the run, and a part of the sentence.
    let cases: &[(&[&str], &str, bool, &str)] = &[
        (&["transformer"], "none", false, "No request failed; at the peak, 33.0 GiB was allocated"),
        // What is left after the batch before the last would have held a larger one, so no batch is called the largest.
        (&["resnet-sweep"], "full", true, "110 MiB was requested; "),
        (&["variable-length"], "fragmented", true, "the largest gap for a request of 1.95 GiB was 994 MiB"),
        (&["variable-length", "--conf", "expandable_segments:True"], "none", false, "No request failed"),
        (&["variable-length", "lengths=padded", "--steps", "8"], "none", false, "No request failed"),
        (&["alternating"], "fragmented", true, "4.00 GiB was free in 1,023 gaps"),
        (&["alternating", "--conf", "expandable_segments:True"], "fragmented", true, "4.00 GiB was free in 1,023 gaps"),
        (
            &["alternating", "block=2", "large=4", "--capacity", "12MiB"],
            "full",
            true,
            "a request of 4.00 MiB takes a segment of 20.0 MiB, and the device has 12.0 MiB in all",
        ),
        (
            &["leak"],
            "leak",
            true,
            "metrics.py:33 (log_outputs) kept 48.0 MiB more in each step, over steps 0 to 218 (10.3 GiB in all)",
        ),
        (
            &["leak", "--steps", "60"],
            "growth",
            false,
            "metrics.py:33 (log_outputs) kept 48.0 MiB more in each step, over steps 0 to 59",
        ),
        (&["checkpoint-save"], "none", false, "checkpoint.py:47"),
        (&["checkpoint-save", "--capacity", "14GiB"], "full", true, "live tensors held 13.1 GiB of 14.0 GiB"),
        (&["checkpoint-save", "--capacity", "16GiB"], "full", true, "live tensors held 15.1 GiB of 16.0 GiB"),
        (&["checkpoint-save", "--capacity", "20GiB"], "full", true, "live tensors held 19.0 GiB of 20.0 GiB"),
        (
            &["checkpoint-save", "--capacity", "22GiB"],
            "spike",
            true,
            "checkpoint.py:47 (<dictcomp>) held 7.54 GiB for the moment",
        ),
        (
            &["checkpoint-save", "--capacity", "24GiB"],
            "spike",
            true,
            "checkpoint.py:47 (<dictcomp>) held 9.27 GiB for the moment",
        ),
        (
            &["checkpoint-save", "--capacity", "27GiB"],
            "spike",
            true,
            "checkpoint.py:47 (<dictcomp>) held 12.3 GiB for the moment",
        ),
        (&["checkpoint-save", "copy=pinned"], "none", false, "at the peak, 20.6 GiB was allocated"),
        (&["checkpointing"], "none", false, "at the peak, 33.0 GiB was allocated"),
        (&["checkpointing", "--capacity", "24GiB"], "full", true, "live tensors held 23.4 GiB of 24.0 GiB"),
        (&["empty-cache"], "none", false, "at the peak, 7.88 GiB was allocated"),
        (&["model-switch"], "retries", false, "had to wait until cached memory was released"),
        (
            &["variable-length", "--steps", "9", "--conf", "max_split_size_mb:200,expandable_segments:True"],
            "retries",
            false,
            "had to wait until cached memory was released",
        ),
        (&["model-switch", "empty-cache=yes"], "none", false, "No request failed"),
        (
            &["recovery"],
            "full",
            false,
            "96.0 MiB was requested; 48.7 MiB was free, 47.3 MiB short even without fragmentation",
        ),
        (&["kv-serving", "--steps", "60"], "full", false, "live tensors held 47.5 GiB of 48.0 GiB"),
        // A program that only sets up grows, but does not leak.
        (
            &["kv-serving", "--steps", "9", "--capacity", "24GiB"],
            "full",
            true,
            "live tensors held 23.9 GiB of 24.0 GiB",
        ),
        (&["alternating", "block=1024", "large=1"], "full", false, "live tensors held 8.00 GiB of 8.00 GiB"),
        (&["leak", "--steps", "2", "--capacity", "1MiB"], "full", true, "the device has 1.00 MiB in all"),
        (
            &["sample"],
            "leak",
            true,
            "gpt/evaluate.py:33 (append) kept 63.7 MiB more in each step on average, over steps 7 to 60",
        ),
    ];
    for (arguments, cause, has_failed, part) in cases {
        let report = run(arguments)?;
        let message = report["cause"]["message"].as_str().context("no message")?;
        assert_eq!(report["cause"]["kind"], *cause, "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
        assert_eq!(!report["error"].is_null(), *has_failed, "{arguments:?}: {}", report["error"]);
        // The report of the trace agrees with the allocator's counters.
        let device = &report["trace"]["devices"][0];
        let end = &device["end"];
        for (counted, found) in [("/allocated/now", "allocated_bytes"), ("/reserved/now", "reserved_bytes")] {
            assert_eq!(Some(bytes(&report, counted)), end[found].as_u64(), "{arguments:?} {counted}");
        }
        let peak = &device["peak"]["requested_bytes"];
        assert_eq!(peak.as_u64(), Some(bytes(&report, "/requested/peak")), "{arguments:?}");
        let findings = report["trace"]["findings"].as_array().context("no findings")?;
        assert!(findings.iter().all(|finding| finding["code"] == "out_of_memory"), "{arguments:?}: {findings:?}");
        assert_eq!(findings.is_empty(), report["num_ooms"] == 0, "{arguments:?}");
        assert!(bytes(&report, "/reserved/peak") <= bytes(&report, "/capacity_bytes"), "{arguments:?}");
        // There is one verdict, which follows from the trace, and it agrees with the allocator's counters.
        let verdict = &device["diagnosis"]["verdict"];
        assert_eq!(
            (&verdict["sentence"], &report["verdict"]["sentence"]),
            (&report["cause"]["message"], &verdict["sentence"])
        );
        assert!(!(message.starts_with("Full") && message.to_lowercase().contains("fragmented")), "{message}");
        assert_eq!(device["diagnosis"]["failed"], report["num_ooms"], "{arguments:?}");
        if *cause == "retries" {
            let retries = format!("Tight, but nothing failed: {} request", report["num_alloc_retries"]);
            assert!(message.starts_with(&retries), "{arguments:?}: {message}");
        }
        if ["none", "retries", "growth"].contains(cause) {
            let allocated = Bytes(bytes(&report, "/allocated/peak"));
            assert!(message.contains(&format!("at the peak, {allocated} was allocated")), "{arguments:?}: {message}");
        }
    }
    Ok(())
}

/// The first failure of a workload that fills the device, then frees every other block and makes a large request.
#[test]
fn a_run_prints_its_verdict_once() -> Result<()> {
    for workload in ["alternating", "leak"] {
        let verdict = run(&[workload])?["trace"]["devices"][0]["diagnosis"]["verdict"].clone();
        let text = String::from_utf8(program::run(&["run", workload])?.stdout)?;
        let [headline, sentence] = ["headline", "sentence"].map(|name| verdict[name].as_str().unwrap_or_default());
        assert!(!headline.is_empty() && !sentence.is_empty(), "{verdict}");
        assert_eq!((text.matches(headline).count(), text.matches(sentence).count()), (1, 0), "{text}");
    }
    Ok(())
}

#[test]
fn a_page_of_an_expandable_segment_is_what_the_driver_was_asked_for() -> Result<()> {
    let report = run(&["alternating", "--conf", "expandable_segments:True"])?;
    let first = &report["trace"]["devices"][0]["diagnosis"]["ooms"][0];
    let facts =
        ["requested", "asked_of_driver", "driver_free"].map(|name| first[name].as_u64().map(|bytes| bytes >> 20));
    assert_eq!(facts, [Some(4), Some(20), Some(12)]);
    assert_eq!(first["cause"], "full", "{first}");
    Ok(())
}

/// Segments without a live block are not fragmented.
#[test]
fn whole_free_segments_are_counted_apart() -> Result<()> {
    let report = run(&["model-switch"])?;
    let found = ["/fragmentation/cached_bytes", "/fragmentation/split_bytes", "/fragmentation/whole_bytes"];
    let [cached, split, whole] = found.map(|path| bytes(&report, path));
    assert_eq!(cached, split + whole);
    assert!(split < cached / 4, "{split} of {cached}");
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
fn a_workload_is_tuned_and_run_again() -> Result<()> {
    // The settings serve the request that failed; the run under them tells what follows.
    let cases = [
        (["leak", "--capacity", "16GiB", "--steps", "300"], false),
        (["checkpoint-save", "--capacity", "27GiB", "--steps", "6"], true),
    ];
    for (arguments, ends) in cases {
        let tuned = run(&[&arguments[..], &["--tune=fit"]].concat())?;
        assert_eq!(tuned["file"], arguments[0]);
        assert!(tuned["tried"].as_u64() > Some(50), "{arguments:?}");
        assert_eq!(tuned["selfcheck"]["first_difference"], Value::Null);
        let again = &tuned["rerun"];
        assert_eq!(again["conf"], tuned["advice"]["conf"]);
        assert_eq!(again["error"].is_null(), ends, "{arguments:?}: {again}");
        let conf = again["conf"].as_str().context("no settings")?;
        let own = run(&[&arguments[..], &["--conf", conf]].concat())?;
        assert_eq!(again["peak_reserved"], own["reserved"]["peak"], "{arguments:?}");
        assert_eq!(again["ooms"], own["num_ooms"], "{arguments:?}");
    }
    // Nothing helps: there is nothing to run again.
    let tuned = run(&["alternating", "--tune"])?;
    assert_eq!((&tuned["advice"]["conf"], &tuned["rerun"]), (&Value::Null, &Value::Null));
    Ok(())
}

#[test]
fn stories_that_go_two_ways_compare_them() -> Result<()> {
    let note = |arguments: &[&str]| -> Result<(Value, String)> {
        let report = run(arguments)?;
        let note = report["notes"][0].as_str().context("no note")?.to_owned();
        Ok((report, note))
    };
    // The device has no copy of what goes through pinned memory, and the program hardly waits.
    let (pinned, said) = note(&["checkpoint-save", "copy=pinned"])?;
    assert!(said.starts_with("Saved 3 checkpoints of 13.2 GiB through pinned host memory: 18.8 GiB of it"), "{said}");
    let lines = pinned["trace"]["devices"][0].to_string();
    assert!(!lines.contains("checkpoint.py"), "{lines}");
    let tensor = run(&["checkpoint-save", "copy=tensor"])?;
    assert_eq!(bytes(&pinned, "/allocated/peak"), bytes(&tensor, "/allocated/peak"));
    assert!(bytes(&pinned, "/elapsed_us") < bytes(&tensor, "/elapsed_us") * 2 / 3);

    let (_, said) = note(&["checkpointing"])?;
    let want = "holds up to 33.0 GiB, or 21.8 GiB if it keeps only the input of each layer. It then makes 1,117 tensors a step \
                instead of 805";
    assert!(said.contains(want), "{said}");
    let (_, every) = note(&["checkpointing", "every=4", "layers=12"])?;
    assert!(every.contains("if it keeps only the input of every 4 layers"), "{every}");
    // Too few steps to compare.
    assert_eq!(run(&["checkpointing", "--steps", "1"])?["notes"], serde_json::json!([]));

    let (emptied, said) = note(&["empty-cache"])?;
    assert!(said.contains("0 driver calls on average without empty_cache, and 140 with it"), "{said}");
    assert!(bytes(&emptied, "/num_device_free") > 400);
    let (rarely, _) = note(&["empty-cache", "every=3"])?;
    assert!(bytes(&rarely, "/num_device_free") < bytes(&emptied, "/num_device_free") / 2);
    assert_eq!(run(&["empty-cache", "--steps", "2"])?["notes"], serde_json::json!([]));
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
        let ran = run(&[arguments, &["--force", "--out", snapshot.as_str()][..]].concat())?;
        let again = run(&[arguments, &["--force", "--out", recording.as_str()][..]].concat())?;
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
    assert!(workloads.len() >= 12);
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
        (&["run", "leak", "--tune", "--driver", "cuda"], "leave out --driver cuda"),
        (&["run", "leak", "--torch", "1.9"], "Unknown torch release"),
        (&["run", "leak", "--out", "trace.txt"], "unknown kind of file"),
        (&["run", "leak", "--out", "/nowhere/at/all.pickle"], "can't be written"),
        (&["run", "leak", "--out", "/nowhere/at/all.vramscope"], "can't be written"),
        (&["run", "transformer", "hidden=100", "heads=7"], "must be a multiple of heads"),
        (&["budget", "--heads", "5"], "must be a multiple of heads"),
        (&["budget", "--layers", "0"], "layers must be between 1 and"),
        (&["budget", "--params", "nan"], "not a number of weights"),
        (&["budget", "--params", "7G"], "Write 8k for 8,000"),
        (&["budget", "--layers", "1.5"], "not a whole number of layers"),
        (&["budget", "--vocab", "32,000"], "is ambiguous"),
        (&["budget", "--seq", "2048 tokens"], "Write it like 32"),
        (&["budget", "--experts", "8"], "--experts needs --active-experts"),
        (&["budget", "--active-experts", "2"], "need --experts"),
        (&["budget", "--experts", "8", "--active-experts", "9"], "active-experts must be between 1 and 8"),
        (
            &["budget", "--config", "/nowhere/config.json"],
            "--config /nowhere/config.json: There is no such file. Check the path.",
        ),
        (&["budget", "--config", "/"], "Name the config.json in it"),
        (&["budget", "--checkpoint", "every-x"], "Write none, full or every-4"),
        (&["budget", "--checkpoint", "every-0"], "checkpoint must be between 1 and"),
        (&["budget", "--dropout", "perhaps"], "--dropout must be yes or no"),
        (&["budget", "--card", "A100"], "\"A100\" may be A100-40GB or A100-80GB"),
        (&["budget", "--card", "A1000"], "There is no card \"A1000\" in the list"),
        (&["budget", "--lora-rank", "8.5"], "not a whole number"),
        (&["budget", "--lora-rank", "8", "--lora-targets", "q,query"], "there is no matrix \"query\""),
        (&["budget", "--lora-rank", "8", "--lora-targets", "qkv,q"], "name it, or q, k and v"),
        (&["budget", "--lora-rank", "8", "--lora-targets", "gate"], "the target gate needs a gated MLP"),
        (&["budget", "--quantize", "nf4"], "Give --lora-rank 8, --optimizer none or --quantize none"),
        (
            &["budget", "gpt-oss-20b", "--quantize", "mxfp4"],
            "Give --optimizer none, or --quantize none for weights in 16 bits",
        ),
        (
            &["budget", "--quantize", "mxfp4", "--optimizer", "none"],
            "the weights of experts in fewer bits, and the model has none",
        ),
        (&["budget", "--kbit-training"], "Give --quantize nf4 and --lora-rank 8"),
        (&["budget", "--capacity", "22"], "Write it with a unit, like 22GiB"),
        (&["budget", "--capacity", "22GiB", "--card", "T4"], "cannot be used with"),
        (&["budget", "--fail-on", "oom"], "Give --card H100-80GB or --capacity 22GiB"),
        (
            &["budget", "llama-3-8b", "--params", "70B"],
            "70,000,000,000 weights, and the model's shape has 8,030,261,248",
        ),
        (&["budget", "--sequence", "8"], "type: vramscope budget --help"),
        (&["budget", "--optimizer", "adamm"], "A similar value exists: 'adam'"),
        (&["budget", "--seq"], "a value is required for '--seq <N>'"),
        (&["budget", "--zero", "4", "--data", "2"], "zero must be between 0 and 3"),
        (&["budget", "--zero", "300", "--data", "2"], "--zero must be 0, 1, 2 or 3"),
        (&["budget", "--zero", "1"], "data must be more than 1"),
        (&["budget", "--tensor", "5"], "heads (32) must be a multiple of tensor (5)"),
        (&["budget", "--pipeline", "1,5"], "is ambiguous"),
        (&["budget", "--params", "7B", "--tensor", "2"], "describe the shape"),
        (&["budget", "--sequence-parallel"], "tensor must be more than 1"),
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
fn each_story_has_the_findings_that_it_was_written_for() -> Result<()> {
    let cases: &[(&[&str], &[&str])] = &[
        // A run in which nothing is wrong has none.
        (&["transformer"], &[]),
        (&["variable-length", "lengths=padded", "--steps", "8"], &[]),
        (&["variable-length", "--conf", "expandable_segments:True"], &[]),
        (&["checkpoint-save", "copy=tensor"], &[]),
        (&["checkpoint-save", "copy=pinned"], &[]),
        (&["checkpointing"], &[]),
        // Leaks, large and small.
        (&["leak"], &["leak", "out_of_memory", "retries"]),
        (&["leak", "--steps", "60"], &["leak"]),
        (&["leak", "kept=1", "--steps", "400"], &["leak"]),
        (&["sample"], &["leak", "out_of_memory", "retries"]),
        // Fragmentation.
        (&["alternating"], &["fragmentation", "out_of_memory"]),
        (&["variable-length"], &["fragmentation", "out_of_memory", "retries"]),
        // What is full is not fragmented; what is set up does not leak.
        (&["alternating", "block=1024", "large=1"], &["out_of_memory", "retries"]),
        (&["recovery"], &["out_of_memory"]),
        (&["kv-serving", "--steps", "9", "--capacity", "24GiB"], &["out_of_memory"]),
        (&["transformer", "--capacity", "24GiB"], &["out_of_memory", "retries"]),
        (&["transformer", "layers=48", "checkpoint=full", "--capacity", "40GiB"], &["out_of_memory"]),
        (&["leak", "--steps", "2", "--capacity", "1MiB"], &["out_of_memory"]),
        // The rest, one by one.
        (&["checkpoint-save"], &["spike"]),
        (&["empty-cache"], &["driver_calls"]),
        // Its batches become larger from step to step.
        (&["resnet-sweep"], &["driver_calls", "growth", "out_of_memory", "retries"]),
        (&["model-switch"], &["retries"]),
        (&["model-switch", "empty-cache=yes"], &["driver_calls"]),
        (&["kv-serving", "--steps", "60"], &["driver_calls", "growth", "out_of_memory", "retries"]),
        (&["kv-serving", "private-pools=yes", "--steps", "30"], &["growth", "growth", "out_of_memory", "stuck_cache"]),
        (&["transformer", "--conf", "garbage_collection_threshold:0.8"], &["ineffective_setting"]),
        (&["variable-length", "--conf", "roundup_power2_divisions:2"], &["out_of_memory", "rounding"]),
        (
            &["variable-length", "--steps", "9", "--conf", "max_split_size_mb:200,expandable_segments:True"],
            &["ineffective_setting", "retries"],
        ),
    ];
    for (arguments, want) in cases {
        let report = run(arguments)?;
        let findings = report.pointer("/trace/devices/0/diagnosis/findings").and_then(Value::as_array);
        let findings = findings.with_context(|| format!("{arguments:?}: no findings"))?;
        let mut codes: Vec<&str> = findings.iter().filter_map(|finding| finding["code"].as_str()).collect();
        codes.sort_unstable();
        assert_eq!(codes, *want, "{arguments:?}: {findings:#?}");
    }
    Ok(())
}

#[test]
fn a_run_warns_when_cached_memory_becomes_unusable() -> Result<()> {
    let warnings = |arguments: &[&str]| -> Result<Vec<String>> {
        let output = program::run(&[&["run"], arguments].concat())?;
        let errors = String::from_utf8(output.stderr)?;
        Ok(errors.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect())
    };
    // Every other of its blocks is freed. Expandable segments don't help: no gap has a whole page.
    let found = warnings(&["alternating", "--warn-at", "0.3"])?;
    let want = "warning: 99 % of the cached memory is unusable: of 4.00 GiB cached (7.99 GiB reserved), the largest request \
                that fits has 4.00 MiB. 4.00 GiB are gaps in segments that are in use, 0 B are whole segments. Try to \
                allocate what lives long before what lives short.";
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
