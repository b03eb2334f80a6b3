//! `vramscope doctor`: exit codes, JSON, pasted texts and standard input.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Folder, program};

const ERROR: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 472.00 MiB. GPU 0 has a total capacity of \
                     6.00 GiB of which 84.00 MiB is free. Including non-PyTorch memory, this process has 5.92 GiB memory in \
                     use. Of the allocated memory 5.29 GiB is allocated by PyTorch, and 642.39 MiB is reserved by PyTorch \
                     but unallocated.";

/// Runs the doctor with these bytes as its standard input.
fn doctor(arguments: &[&str], input: &[u8]) -> Result<Output> {
    let mut child = Command::new(program::path()?)
        .arg("doctor")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut pipe = child.stdin.take().context("no pipe")?;
    pipe.write_all(input)?;
    drop(pipe);
    Ok(child.wait_with_output()?)
}

#[test]
fn the_json_has_the_agreed_shape() -> Result<()> {
    let folder = Folder::new("doctor")?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (failed, whole, bad, pasted) = (file("a.pickle"), file("b.vramscope"), file("bad.pickle"), file("error.txt"));
    for (arguments, path) in [(&["alternating"][..], &failed), (&["transformer", "--steps", "2"], &whole)] {
        program::run(&[&["run"], arguments, &["--out", path.as_str()]].concat())?;
    }
    fs::write(&bad, "no snapshot at all")?;
    fs::write(&pasted, ERROR)?;

    let code = |paths: &[&str]| Ok::<_, anyhow::Error>(doctor(paths, b"")?.status.code());
    assert_eq!(code(&[&whole])?, Some(0));
    assert_eq!(code(&[&whole, &failed])?, Some(1));
    assert_eq!(code(&[&pasted])?, Some(1));
    assert_eq!(code(&[&bad, &failed])?, Some(2));

    // One failed request can be chosen, if there is one.
    assert_eq!(code(&[&failed, "--failure", "1"])?, Some(1));
    let refused = doctor(&[&failed, "--failure", "99"], b"")?;
    let said = String::from_utf8_lossy(&refused.stderr);
    ensure!(refused.status.code() == Some(2) && said.contains("2 requests failed: --failure is 1 to 2"), "{said}");
    ensure!(code(&[&whole, "--failure", "1"])? == Some(2), "none failed");

    let output = doctor(&["--json", &failed, &bad, &whole, &pasted], b"")?;
    assert_eq!(output.status.code(), Some(2));
    let printed: Value = serde_json::from_slice(&output.stdout)?;
    let files = printed["files"].as_array().context("no files")?;
    let paths: Vec<_> = files.iter().filter_map(|file| file["path"].as_str()).collect();
    assert_eq!(paths, [&failed, &bad, &whole, &pasted]);
    ensure!(files[1]["error"].is_string() && files[1]["devices"] == serde_json::json!([]), "{}", files[1]);
    ensure!(files[0]["error"].is_null() && files[2]["error"].is_null(), "{printed}");
    assert_eq!(files[3]["pasted"][0]["cause"], "fragmented");

    let device = &files[0]["devices"][0];
    assert_eq!(device["device"], 0);
    assert_eq!(device["verdict"]["cause"], "fragmented");
    assert_eq!(files[2]["devices"][0]["verdict"]["cause"], "none");
    for key in ["sentence", "line", "remedies"] {
        ensure!(device["verdict"].get(key).is_some(), "verdict.{key} is missing");
    }
    let remedies = device["verdict"]["remedies"].as_array().context("no remedies")?;
    ensure!((1..=3).contains(&remedies.len()), "{remedies:?}");
    ensure!(remedies.iter().all(|remedy| remedy["text"].is_string() && remedy["checked"].is_boolean()), "{remedies:?}");
    // No setting helps this one, so none is advised.
    ensure!(remedies.iter().all(|remedy| remedy["checked"] == false && remedy["copy"] == ""), "{remedies:?}");
    let ooms = device["ooms"].as_array().context("no list")?;
    assert_eq!(ooms.len(), 2);
    for oom in ooms {
        for key in ["event", "requested", "asked_of_driver", "driver_free", "cached", "largest_servable", "allocated"] {
            ensure!(oom[key].is_u64(), "ooms.{key} is missing");
        }
        ensure!(oom["cause"].is_string(), "{oom}");
    }
    let findings = device["findings"].as_array().context("no findings")?;
    ensure!(findings.iter().any(|finding| finding["code"] == "out_of_memory"), "{findings:?}");
    for finding in findings {
        ensure!(finding["severity"].is_string() && finding["message"].is_string(), "{finding}");
        ensure!(finding.get("bytes").is_some() && finding.get("event").is_some(), "{finding}");
    }
    // The event that the verdict is about is an out-of-memory event of the report.
    let event = device["verdict"]["event"].as_u64();
    ensure!(ooms.iter().any(|oom| oom["event"].as_u64() == event), "{event:?}");
    Ok(())
}

#[test]
fn a_setting_that_would_have_helped_was_run() -> Result<()> {
    let folder = Folder::new("doctor")?;
    let file = folder.join("a.pickle").to_string_lossy().into_owned();
    program::run(&["run", "variable-length", "--steps", "200", "--capacity", "13GiB", "--out", &file])?;
    let output = doctor(&["--json", &file], b"")?;
    let printed: Value = serde_json::from_slice(&output.stdout)?;
    let first = &printed["files"][0]["devices"][0]["verdict"]["remedies"][0];
    ensure!(first["checked"] == true && first["copy"] == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "{first}");
    ensure!(first["text"].as_str().is_some_and(|text| text.contains("The request fits: 0 retries, ")), "{first}");
    let text = String::from_utf8(doctor(&[&file], b"")?.stdout)?;
    ensure!(text.contains("help (checked on this trace): Let segments grow"), "{text}");
    Ok(())
}

#[test]
fn every_setting_to_copy_keeps_those_of_the_run() -> Result<()> {
    const OWN: [&str; 2] = ["max_split_size_mb:200", "garbage_collection_threshold:0.8"];
    let folder = Folder::new("doctor")?;
    let file = folder.join("a.pickle").to_string_lossy().into_owned();
    let conf = OWN.join(",");
    let run = ["run", "variable-length", "--steps", "200", "--capacity", "13GiB", "--conf", &conf, "--warn-at", "0.3"];
    let mut texts = vec![program::run(&[&run[..], &["--out", &file]].concat())?];
    for arguments in
        [&["doctor", &file][..], &["doctor", "--json", &file], &["report", &file], &["report", "--json", &file]]
    {
        texts.push(program::run(arguments)?);
    }
    let text: String =
        texts.iter().flat_map(|output| [&output.stdout, &output.stderr]).map(|b| String::from_utf8_lossy(b)).collect();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("ALLOC_CONF=")).collect();
    ensure!(lines.len() > 4, "{text}");
    for line in lines {
        ensure!(OWN.iter().all(|own| line.contains(own)), "whoever copies it loses settings: {line}");
    }
    // A search chooses among all settings. What it leaves out, it says.
    let tuned = String::from_utf8(program::run(&["tune", &file, "--goal", "fit"])?.stdout)?;
    let line = tuned.lines().find(|line| line.trim().starts_with("PYTORCH_CUDA_ALLOC_CONF=")).context("no line")?;
    for own in OWN {
        let name = own.split(':').next().context("a name")?;
        let is_said = tuned.lines().any(|line| line.contains("It leaves out ") && line.contains(own));
        ensure!(line.contains(name) || is_said, "{tuned}");
    }
    Ok(())
}

#[test]
fn standard_input_is_a_trace_or_a_text() -> Result<()> {
    let trace = doctor(&["-"], &vramscope::workloads::sample::snapshot())?;
    let text = String::from_utf8(trace.stdout)?;
    assert_eq!(trace.status.code(), Some(1), "{text}");
    ensure!(text.contains("  Leak: ") && text.contains("help: "), "{text}");

    let pasted = doctor(&["-"], ERROR.as_bytes())?;
    let text = String::from_utf8(pasted.stdout)?;
    assert_eq!(pasted.status.code(), Some(1), "{text}");
    ensure!(text.contains("Fragmented, most likely: ") && text.contains("_record_memory_history"), "{text}");

    for text in ["nothing of the kind", "RuntimeError: CUDA error: device-side assert triggered", ""] {
        let other = doctor(&["-"], text.as_bytes())?;
        assert_eq!((other.status.code(), other.stdout.len()), (Some(2), 0));
        let said = String::from_utf8(other.stderr)?;
        assert_eq!(said.lines().count(), 1, "{said}");
        ensure!(
            said.contains("Paste the whole message that begins \"CUDA out of memory. Tried to allocate\""),
            "{said}"
        );
    }
    Ok(())
}

/// The run, its files and the doctor never disagree.
#[test]
fn a_run_and_its_files_have_one_verdict() -> Result<()> {
    let folder = Folder::new("verdicts")?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    for arguments in [&["alternating"][..], &["checkpoint-save", "--capacity", "24GiB"], &["recovery"]] {
        let (snapshot, recording) = (file("a.pickle"), file("a.vramscope"));
        let ran = program::run(&[&["run", "--json", "--force", "--out", snapshot.as_str()], arguments].concat())?;
        program::run(&[&["run", "--force", "--out", recording.as_str()], arguments].concat())?;
        let ran: Value = serde_json::from_slice(&ran.stdout)?;
        let want = &ran["verdict"]["sentence"];
        ensure!(want.is_string(), "{arguments:?}");
        let examined: Value = serde_json::from_slice(&doctor(&["--json", &snapshot, &recording], b"")?.stdout)?;
        let reported = program::run(&["report", "--json", &snapshot, &recording])?;
        let reported: Value = serde_json::from_slice(&reported.stdout)?;
        for i in 0..2 {
            assert_eq!(&examined["files"][i]["devices"][0]["verdict"]["sentence"], want, "{arguments:?}");
            assert_eq!(&reported["files"][i]["devices"][0]["diagnosis"]["verdict"]["sentence"], want, "{arguments:?}");
        }
    }
    Ok(())
}

/// What the exit code says of every kind of input: 0 without a failure, 1 with one, 2 if it can't be read.
#[test]
fn the_exit_code_tells_what_was_read() -> Result<()> {
    let folder = Folder::new("inputs")?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (quiet, cut, stub, empty, noise) =
        (file("quiet.pickle"), file("cut.pickle"), file("stub.pickle"), file("empty.txt"), file("noise.bin"));
    let (damaged, transcript) = (file("damaged.pickle"), file("transcript.json"));
    program::run(&["run", "transformer", "--steps", "2", "--out", &quiet])?;
    let whole = fs::read(&quiet)?;
    fs::write(&cut, &whole[..whole.len() * 2 / 3])?;
    fs::write(&stub, &whole[..100])?;
    let middle = whole.len() / 2;
    fs::write(&damaged, [&whole[..middle], &[0xff; 400], &whole[middle + 400..]].concat())?;
    fs::write(&transcript, r#"{"segments": [{"id": 0, "start": 0.5}, {"id": 1}]}"#)?;
    fs::write(&empty, "")?;
    fs::write(&noise, (0..200_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<u8>>())?;
    let inside = folder.join("").to_string_lossy().into_owned();
    // The arguments, the standard input, the code, and a part of what is printed.
    let two = format!("{ERROR}\n\nTraceback (most recent call last):\n{}", ERROR.replace("472.00 MiB", "9.00 GiB"));
    let cases: &[(&[&str], &[u8], i32, &str)] = &[
        (&[&quiet], b"", 0, "No request failed"),
        // What is left of a file is examined, and it says so.
        (&[&cut], b"", 0, "The file is truncated"),
        (&[&damaged], b"", 0, "The file is damaged at byte "),
        (&[&transcript], b"", 2, "Not a PyTorch memory snapshot"),
        (&[&stub], b"", 2, "The file is truncated"),
        (&["-"], &whole[..100], 2, "The file is truncated"),
        (
            &[&empty],
            b"",
            2,
            "The file is empty. Record a snapshot with torch.cuda.memory._dump_snapshot. Paste the whole",
        ),
        (&[&noise], b"", 2, "Not a PyTorch memory snapshot"),
        (&[&inside], b"", 2, "This is a folder"),
        (&[&file("absent")], b"", 2, "There is no such file"),
        (&["-"], b"", 2, "The file is empty"),
        (&["-"], b" \n\n", 2, "Paste the whole message that begins"),
        (&["-"], b"CUDA out of memory", 2, "Paste the whole message that begins"),
        (&["-"], b"{}", 2, "Not a PyTorch memory snapshot"),
        // Of several errors, the last one counts.
        (&["-"], two.as_bytes(), 1, "9.00 GiB"),
        // Standard input can be read once.
        (&["-", "-"], ERROR.as_bytes(), 2, "Standard input can be read only once. Name - in one place."),
        (&[&quiet, "-"], ERROR.as_bytes(), 1, "Fragmented, most likely: "),
        (&["-", &noise], ERROR.as_bytes(), 2, "Fragmented, most likely: "),
    ];
    for (arguments, input, code, part) in cases {
        let output = doctor(arguments, input)?;
        let printed = String::from_utf8([output.stdout, output.stderr].concat())?;
        ensure!(
            output.status.code() == Some(*code) && printed.contains(part),
            "{arguments:?} {:?}: {printed}",
            output.status
        );
        // What is wrong is one line for each file that can't be read.
        let json = doctor(&[&["--json"], *arguments].concat(), input)?;
        assert_eq!(json.status.code(), Some(*code), "{arguments:?}");
        let files: Value = serde_json::from_slice(&json.stdout)?;
        let errors = files["files"].as_array().into_iter().flatten().filter(|file| file["error"].is_string()).count();
        assert_eq!(String::from_utf8(json.stderr)?.lines().count(), errors, "{arguments:?}");
        assert_eq!(errors > 0, *code == 2, "{arguments:?}");
    }
    Ok(())
}

/// An input without an end is refused at its beginning.
#[cfg(unix)]
#[test]
fn an_endless_input_is_refused() -> Result<()> {
    let output = doctor(&["/dev/zero"], b"")?;
    assert_eq!(output.status.code(), Some(2));
    let endless = Command::new(program::path()?).args(["doctor", "-"]).stdin(fs::File::open("/dev/zero")?).output()?;
    assert_eq!(endless.status.code(), Some(2));
    assert_eq!(String::from_utf8(endless.stderr)?.lines().count(), 1);
    Ok(())
}

/// A person's own rules choose the lines, and nothing else.
#[test]
fn rules_of_whose_code_a_frame_is_choose_the_lines() -> Result<()> {
    let folder = Folder::new("folded")?;
    let path = folder.join("a.pickle").to_string_lossy().into_owned();
    program::run(&["run", "leak", "--out", &path])?;
    let verdict = |arguments: &[&str]| -> Result<Value> {
        let output = doctor(&[&["--json", &path], arguments].concat(), b"")?;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let printed: Value = serde_json::from_slice(&output.stdout)?;
        Ok(printed["files"][0]["devices"][0]["verdict"].clone())
    };
    let plain = verdict(&[])?;
    let line = plain["line"].as_str().context("no line")?.to_owned();
    ensure!(line.contains("metrics.py"), "{line}");
    // As a library, the line that called it is shown.
    let called = verdict(&["--library", "metrics.py"])?;
    let outer = called["line"].as_str().context("no line")?;
    ensure!(!outer.contains("metrics.py") && called["cause"] == plain["cause"], "{called}");
    let (function, place) = outer.split_once("  ").context("no place")?;
    let outer = format!("{place} ({function})");
    ensure!(called["sentence"].as_str().is_some_and(|sentence| sentence.contains(&outer)), "{called}");
    assert_eq!(verdict(&["--mine", "metrics.py"])?["line"], line);
    for arguments in [&["--mine", ""][..], &["--library", ""]] {
        let output = doctor(&[&[path.as_str()], arguments].concat(), b"")?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
    }
    Ok(())
}

#[test]
fn rules_of_ones_own_change_lines_and_categories() -> Result<()> {
    let folder = Folder::new("own-rules")?;
    let file = folder.join("a.pickle").to_string_lossy().into_owned();
    program::run(&["run", "leak", "--capacity", "6GiB", "--out", &file])?;
    let failure = |rules: &[&str]| -> Result<Value> {
        let printed: Value =
            serde_json::from_slice(&doctor(&[&["--json", file.as_str()], rules].concat(), b"")?.stdout)?;
        Ok(printed["files"][0]["devices"][0]["ooms"][0].clone())
    };
    let held = |failure: &Value, category: &str| -> u64 {
        let all = failure["categories"].as_array().into_iter().flatten();
        all.filter(|of| of["category"] == category).filter_map(|of| of["bytes"].as_u64()).sum()
    };
    let sum = |failure: &Value| -> u64 {
        failure["categories"].as_array().into_iter().flatten().filter_map(|of| of["bytes"].as_u64()).sum()
    };
    let plain = failure(&[])?;
    ensure!(held(&plain, "activations") > 0 && held(&plain, "kv_cache") == 0, "{plain}");
    let own = failure(&["--category", "metrics.py:33=KV cache", "--category", "metrics.py = inputs"])?;
    assert_eq!(sum(&own), sum(&plain));
    let line = |failure: &Value, part: &str| -> u64 {
        let lines = failure["lines"].as_array().into_iter().flatten();
        lines
            .filter(|of| of["line"].as_str().is_some_and(|line| line.contains(part)))
            .filter_map(|of| of["bytes"].as_u64())
            .sum()
    };
    assert_eq!(held(&own, "kv_cache"), line(&own, "metrics.py:33"));
    // Lines that are a library's are named after what called them.
    ensure!(line(&plain, "metrics.py:33") > 0);
    let folded = failure(&["--library", "metrics.py"])?;
    assert_eq!((line(&folded, "metrics.py:33"), sum(&folded)), (0, sum(&plain)));
    assert_eq!(failure(&["--mine", "metrics.py"])?, plain);

    for (rule, why) in
        [("metrics.py", "has no “=”"), ("a=things", "“things” is no category"), ("=inputs", "Name a part")]
    {
        let refused = doctor(&[&file, "--category", rule], b"")?;
        assert_eq!(refused.status.code(), Some(2), "{rule}");
        ensure!(String::from_utf8_lossy(&refused.stderr).contains(why), "{rule}: {refused:?}");
    }
    Ok(())
}
