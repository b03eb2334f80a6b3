//! What people know from other command lines: errors in one form, exit codes, standard input, compressed files, `--force`,
//! suggestions, completions, and output that fits a terminal.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Folder, program};

/// Runs the program with an input.
fn fed(arguments: &[&str], input: &[u8]) -> Result<Output> {
    let mut child = Command::new(program::path()?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // A program that refuses its arguments reads nothing.
    let _ = child.stdin.take().context("no pipe")?.write_all(input);
    Ok(child.wait_with_output()?)
}

fn said(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Writes the sample into a folder.
fn sample(folder: &Path) -> Result<String> {
    let path = folder.join("sample.pickle");
    fs::write(&path, vramscope::workloads::sample::snapshot())?;
    Ok(path.to_string_lossy().into_owned())
}

#[test]
fn every_command_refuses_in_one_form_and_with_one_exit_code() -> Result<()> {
    let folder = Folder::new("refusals")?;
    let here = folder.to_str().context("a path")?;
    for arguments in [
        &["report", "no-such-file"][..],
        &["doctor", "no-such-file"],
        &["curves", "no-such-file"],
        &["whatif", "no-such-file"],
        &["tune", "no-such-file"],
        &["predict", "no-such-file"],
        &["plan", "no-such-file", "--save", "1GiB"],
        &["diff", "no-such-file", "no-such-file"],
        &["check", "no-such-file"],
        &["baseline", "set", "no-such-baseline", "no-such-file"],
        &["strip", "no-such-file", "--preview"],
        &["push", "no-such-file"],
        &["replay", "no-such-file"],
        &["bench-allocators", "no-such-file.pickle"],
        &["export", "no-such-file", "--out", "x.txt"],
        &["pull", "no link"],
        &["unshare", "no link"],
        &["run", "no-such-workload"],
        &["sweep", "no-such-workload", "batch=1..2"],
        &["budget", "--config", "no-such-file"],
        &["token", "new", "--name", "x", "--role", "none"],
        &["store", "check", "--data", "/proc/version"],
        &["serve", "--listen", "192.0.2.1:1"],
        &["serve", "--log", "loud"],
        &["man", "no-such-command"],
    ] {
        let mut command = Command::new(program::path()?);
        let output = command.args(arguments).current_dir(here).env_remove("VRAMSCOPE_TOKEN").output()?;
        let (code, errors) = said(&output);
        assert_eq!(code, Some(2), "{arguments:?}: {errors}");
        ensure!(errors.starts_with("error: ") && errors.lines().count() == 1, "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(fs::read_dir(&*folder)?.count(), 0);
    // Invalid options begin in the same way.
    let (code, errors) = said(&program::run(&["report", "--jsn", "x"])?);
    ensure!(code == Some(2) && errors.starts_with("error: ") && errors.contains("'--json'"), "{errors}");
    Ok(())
}

#[test]
fn gates_tell_what_was_found_by_the_exit_code() -> Result<()> {
    let folder = Folder::new("gates")?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (failed, leaking, quiet) = (file("failed.pickle"), file("leaking.pickle"), file("quiet.pickle"));
    for (workload, path) in [
        (&["alternating"][..], &failed),
        (&["leak", "--capacity", "80GiB"], &leaking),
        (&["transformer", "--steps", "2"], &quiet),
    ] {
        ensure!(program::run(&[&["run"], workload, &["--out", path]].concat())?.status.success());
    }
    let code = |arguments: &[&str]| Ok::<_, anyhow::Error>(program::run(arguments)?.status.code());
    for (command, file, gate, want) in [
        ("doctor", &failed, None, 1),
        ("doctor", &failed, Some("never"), 0),
        ("doctor", &leaking, None, 0),
        ("doctor", &leaking, Some("failure"), 1),
        ("doctor", &quiet, Some("failure"), 0),
        ("report", &failed, None, 0),
        ("report", &failed, Some("oom"), 1),
        ("report", &leaking, Some("oom"), 0),
        ("report", &leaking, Some("warning"), 1),
        ("whatif", &quiet, Some("oom"), 0),
        ("whatif", &failed, Some("oom"), 1),
    ] {
        let mut arguments = vec![command, file.as_str()];
        arguments.extend(gate.into_iter().flat_map(|gate| ["--fail-on", gate]));
        assert_eq!(code(&arguments)?, Some(want), "{arguments:?}");
    }
    // It tells whether a change fits, before it is made.
    assert_eq!(code(&["whatif", &quiet, "--capacity", "1GiB", "--fail-on", "oom"])?, Some(1));
    assert_eq!(code(&["run", "alternating", "--fail-on", "oom"])?, Some(1));
    assert_eq!(code(&["run", "transformer", "--steps", "1", "--fail-on", "oom"])?, Some(0));
    for (command, wanted) in [
        (&["--help"][..], "\nExit status: 0 done; 1 a gate tripped"),
        (&["doctor", "--help"], "\nExit status:\n  0  Done"),
        (&["store", "--help"], "\nExit status:\n  0  Done"),
        (&["predict", "--help"], "\nExit status:\n  0  It fits"),
    ] {
        let text = String::from_utf8(program::run(command)?.stdout)?;
        ensure!(text.contains(wanted), "{command:?}: {text}");
    }
    Ok(())
}

fn gzip(plain: &[u8]) -> Result<Vec<u8>> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(plain)?;
    Ok(packed.finish()?)
}

#[test]
fn a_checksum_that_does_not_match_is_said_and_what_was_read_is_shown() -> Result<()> {
    let folder = Folder::new("checksum")?;
    let mut damaged = gzip(&fs::read(sample(&folder)?)?)?;
    let sum = damaged.len() - 8;
    damaged[sum] ^= 1;
    let file = folder.join("damaged.pickle.gz");
    fs::write(&file, &damaged)?;
    let file = file.to_string_lossy();
    for command in ["report", "doctor"] {
        for output in [fed(&[command, "--json", "-"], &damaged)?, program::run(&[command, "--json", &file])?] {
            let text = String::from_utf8_lossy(&output.stdout);
            ensure!(
                text.contains("its checksum does not match") && text.contains("\"device\": 0"),
                "{command}: {text}"
            );
        }
    }
    Ok(())
}

#[test]
fn every_file_may_be_compressed_or_come_through_a_pipe() -> Result<()> {
    let folder = Folder::new("pipes")?;
    let plain = fs::read(sample(&folder)?)?;
    let gzip = gzip(&plain)?;
    for input in [&plain, &gzip] {
        for arguments in [
            &["report", "-"][..],
            &["doctor", "--fail-on", "never", "-"],
            &["curves", "-"],
            &["whatif", "-"],
            &["tune", "-"],
            &["plan", "-", "--fit", "900GiB"],
            &["strip", "-", "--preview"],
            &["bench-allocators", "-"],
        ] {
            let output = fed(arguments, input)?;
            ensure!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}: {:?}", said(&output));
        }
    }
    // Scripts, configurations and pasted errors as well; zstd is a frame of one raw block.
    let zstd = |text: &[u8]| {
        let header = ((text.len() as u32) << 3 | 1).to_le_bytes();
        // A window of a kilobyte, and no checksum.
        [b"\x28\xb5\x2f\xfd\x00\x00", &header[..3], text].concat()
    };
    let script = br#"{"capacity_bytes": 1073741824, "ops": [["malloc", "a", 512, 0], ["snapshot"]]}"#;
    let answer = fed(&["replay", "-"], script)?;
    let config = br#"{"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}"#;
    let error = b"CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 10.00 MiB is free.";
    for (arguments, text) in [
        (&["replay", "-"][..], &script[..]),
        (&["budget", "--config", "-"], config),
        (&["doctor", "-", "--fail-on", "never"], error),
    ] {
        let [plain, packed] = [fed(arguments, text)?, fed(arguments, &zstd(text))?];
        assert_eq!(plain.stdout, packed.stdout, "{arguments:?}: {:?}", said(&packed));
        assert_eq!(plain.status.code(), packed.status.code());
    }
    ensure!(answer.status.success(), "{:?}", said(&answer));
    let cut = fed(&["replay", "-"], &zstd(script)[..30])?;
    ensure!(said(&cut).1.contains("The zstd is damaged"), "{:?}", said(&cut));
    Ok(())
}

#[test]
fn an_existing_file_is_replaced_only_with_force() -> Result<()> {
    let folder = Folder::new("force")?;
    let sample = sample(&folder)?;
    let out = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (recording, snapshot, document) = (out("a.vramscope"), out("a.pickle"), out("a.json"));
    for (arguments, file) in [
        (&["strip", &sample, "--out", &recording][..], &recording),
        (&["whatif", &sample, "--out", &recording], &recording),
        (&["run", "leak", "--steps", "1", "--out", &recording], &recording),
        (&["run", "leak", "--steps", "1", "--out", &snapshot], &snapshot),
        (&["sweep", "transformer", "batch=1..2", "--steps", "1", "--out", &document], &document),
    ] {
        fs::write(file, "precious")?;
        let (code, errors) = said(&program::run(arguments)?);
        let want = format!("{file} exists already. Replace it with --force, or name another file with --out.");
        ensure!(code == Some(2) && errors.contains(&want), "{arguments:?}: {errors}");
        assert_eq!(fs::read_to_string(file)?, "precious");
        let forced = program::run(&[arguments, &["--force"]].concat())?;
        ensure!(forced.status.success() && fs::read(file)? != b"precious", "{arguments:?}: {:?}", said(&forced));
    }
    assert!(fs::read_dir(&*folder)?.flatten().all(|entry| entry.path().extension() != Some("part".as_ref())));
    Ok(())
}

#[test]
fn a_slip_gets_a_suggestion() -> Result<()> {
    for (arguments, want) in [
        (&["run", "transfomer"][..], "Did you mean transformer?"),
        (&["sweep", "transformer", "bacth=1..2"], "Did you mean batch?"),
        (&["run", "transformer", "precison=fp32"], "Did you mean precision?"),
        (&["run", "leak", "--conf", "expandable_segment:True"], "Did you mean expandable_segments?"),
        (&["budget", "--card", "H100-80BG"], "Did you mean H100-80GB?"),
        (&["run", "transformer", "--batch", "8"], "Write it without dashes, such as batch="),
        (&["run", "train.py"], "type: vramscope watch train.py"),
        (&["run", "train.py", "--epochs", "3"], "type: vramscope watch train.py"),
        (&["run", "leak", "--conf", "backend:cudaMallocAsync"], "type: vramscope bench-allocators"),
        (&["reprot", "x"], "Did you mean report?"),
    ] {
        let (code, errors) = said(&program::run(arguments)?);
        ensure!(code == Some(2) && errors.contains(want), "{arguments:?}: {errors}");
    }
    Ok(())
}

#[test]
fn shells_and_man_know_every_command() -> Result<()> {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = String::from_utf8(program::run(&["completions", shell])?.stdout)?;
        ensure!(script.contains("bench-allocators") && script.contains("fail-on"), "{shell}: {script}");
    }
    let folder = Folder::new("man")?;
    let pages = folder.join("man1");
    let arguments = ["man", "--out", pages.to_str().context("a path")?];
    ensure!(program::run(&arguments)?.status.success());
    assert_eq!(program::run(&arguments)?.status.code(), Some(2), "they were replaced");
    let page = fs::read_to_string(pages.join("vramscope-token-new.1"))?;
    ensure!(page.contains(".TH vramscope-token-new 1") && page.contains("\\-\\-role"), "{page}");
    let printed = program::run(&["man", "token", "new"])?;
    assert_eq!(printed.stdout, page.as_bytes());
    let own = fs::read_to_string(pages.join("vramscope.1"))?;
    ensure!(own.contains("bench\\-allocators") && own.contains("Exit status"), "{own}");
    Ok(())
}

/// Returns what stays of it: what comes after the line that tells the progress.
fn result(shown: &str) -> String {
    shown.rsplit("\r\x1b[K").next().unwrap_or_default().to_owned()
}

#[test]
fn output_fits_the_terminal_and_color_can_be_switched_off() -> Result<()> {
    let folder = Folder::new("terminal")?;
    let sample = sample(&folder)?;
    let piped = String::from_utf8(program::run(&["report", &sample])?.stdout)?;
    ensure!(piped.lines().any(|line| line.chars().count() > 60) && !piped.contains('\x1b'), "{piped}");
    let shown = result(&program::on_terminal(60, &["report", &sample], &[("NO_COLOR", "1")])?);
    let long = |line: &&str| line.chars().count() > 60 && line.trim().contains(' ');
    ensure!(!shown.lines().map(str::trim_end).any(|line| long(&line)), "{shown}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&shown), words(&piped));
    let colored = program::on_terminal(60, &["doctor", &sample], &[])?;
    ensure!(colored.contains("  \x1b[1m\x1b[31mLeak:\x1b[0m\x1b[1m 3.84 GiB kept"), "{colored:?}");
    // Programs read the same everywhere.
    let json = result(&program::on_terminal(60, &["report", "--json", &sample], &[])?);
    serde_json::from_str::<Value>(&json)?;

    let error = program::on_terminal(80, &["run", "nope"], &[])?;
    ensure!(error.starts_with("\x1b[1m\x1b[31merror:\x1b[0m There is no workload"), "{error:?}");
    let plain = program::on_terminal(80, &["run", "nope"], &[("NO_COLOR", "1")])?;
    ensure!(plain.starts_with("error: There is no workload"), "{plain:?}");
    Ok(())
}

#[test]
fn what_takes_long_says_on_a_terminal_what_it_does() -> Result<()> {
    let arguments = ["run", "transformer", "--steps", "500"];
    let shown = program::on_terminal(80, &arguments, &[])?;
    ensure!(shown.contains("\r\x1b[K") && shown.contains(" events"), "{shown:?}");
    // The line is gone when the result comes, and a terminal that can't rewrite it gets none.
    let after = result(&shown);
    ensure!(after.starts_with("transformer "), "{after:?}");
    ensure!(!program::on_terminal(80, &arguments, &[("TERM", "dumb"), ("CI", "true")])?.contains('\x1b'));
    assert!(program::run(&arguments)?.stderr.is_empty());
    Ok(())
}

#[test]
fn a_report_advises_only_what_serves_the_request() -> Result<()> {
    let folder = Folder::new("advice")?;
    let file = folder.join("a.pickle");
    let path = file.to_str().context("a path")?;
    program::run(&["run", "variable-length", "--steps", "200", "--capacity", "13GiB", "--out", path])?;
    let [report, doctor] = ["report", "doctor"].map(|command| program::run(&[command, "--json", path]));
    let [report, doctor]: [Value; 2] =
        [serde_json::from_slice(&report?.stdout)?, serde_json::from_slice(&doctor?.stdout)?];
    let advised = &report["files"][0]["devices"][0]["diagnosis"]["verdict"]["remedies"];
    assert_eq!(advised, &doctor["files"][0]["devices"][0]["verdict"]["remedies"]);
    ensure!(advised.as_array().is_some_and(|all| all.iter().any(|remedy| remedy["checked"] == true)), "{advised}");
    let text = String::from_utf8(program::run(&["report", path])?.stdout)?;
    ensure!(text.contains("  help (checked on this trace): "), "{text}");
    Ok(())
}
