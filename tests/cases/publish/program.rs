//! `vramscope run --to`.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use format::recording::Decoder;
use serde_json::Value;
use tests::{Folder, program};
use trace::limits::ImportLimits;
use wire::Code;

use super::scripted::{Act, Scripted};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the report and the line after it.
fn json(output: &Output) -> Result<(Value, Value)> {
    let out = text(&output.stdout);
    let (report, line) = out.trim_end().rsplit_once('\n').context("one line only")?;
    Ok((serde_json::from_str(report)?, serde_json::from_str(line)?))
}

#[test]
fn a_run_is_published_and_the_server_has_the_file() -> Result<()> {
    let folder = Folder::new("run")?;
    let file = folder.join("run.vramscope");
    let path = file.to_str().context("a path without a name")?;
    let server = Scripted::start([])?;
    let token = folder.join("token");
    fs::write(&token, "open sesame\n")?;
    let token = token.to_str().context("a path without a name")?;
    let url = server.url();
    let run = ["run", "transformer", "--steps", "2", "--to", &url, "--rate", "0", "--out", path, "--name", "my run"];
    let output = program::run(&[&run[..], &["--token-file", token, "--json"]].concat())?;
    let err = text(&output.stderr);
    ensure!(output.status.success(), "{err}");
    let (report, line) = json(&output)?;
    let events = report["events"].as_u64().context("no events")?;
    assert_eq!((line["events_sent"].as_u64(), line["events_lost"].as_u64()), (Some(events), Some(0)));
    let session = line["session"].as_str().context("no session")?;
    assert_eq!(line.as_object().map(serde_json::Map::len), Some(3));
    assert!(err.contains(&format!("{url}/#session={session}")) && err.contains("has the whole run"), "{err}");
    assert!(server.file() == fs::read(&file)?);
    let store = server.store.lock().unwrap();
    let hello = store.hello.clone().context("no hello")?;
    assert_eq!(
        (hello.session.as_str(), hello.mode.as_str(), hello.token.as_str()),
        (session, "simulated", "open sesame")
    );
    assert_eq!((store.ended.is_some(), store.faults.len()), (true, 0));
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(&fs::read(&file)?)?;
    let header = decoder.recording().header.clone().context("no header")?;
    assert_eq!((header.name.as_str(), header.clock.as_str()), ("my run", "monotonic"));
    Ok(())
}

#[test]
fn a_run_keeps_its_rate_and_ctrl_c_ends_it_properly() -> Result<()> {
    let server = Scripted::start([])?;
    let url = server.url();
    let child = Command::new(program::path()?)
        .args(["run", "transformer", "--steps", "1000000", "--rate", "20000", "--json", "--to", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let decoded = || -> Result<u64> {
        let mut decoder = Decoder::new(ImportLimits::default());
        decoder.push(&server.file())?;
        Ok(decoder.events() as u64)
    };
    server.until("the first batches", |store| store.batches.len() > 3);
    let (start, before) = (Instant::now(), decoded()?);
    std::thread::sleep(Duration::from_secs(2));
    let (took, events) = (start.elapsed().as_secs_f64(), decoded()? - before);
    let rate = events as f64 / took;
    // It may be slower on a busy machine.
    assert!((5_000.0..24_000.0).contains(&rate), "{rate} events a second");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
    ensure!(killed.success());
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", text(&output.stderr));
    let (report, line) = json(&output)?;
    assert_eq!(report["error"].as_str(), Some("the run was interrupted"));
    assert_eq!((line["events_sent"].as_u64(), line["events_lost"].as_u64()), (report["events"].as_u64(), Some(0)));
    assert_eq!(line["events_sent"].as_u64(), Some(decoded()?));
    assert!(server.store.lock().unwrap().ended.is_some());
    Ok(())
}

#[test]
fn an_invalid_destination_is_an_error_of_one_line() -> Result<()> {
    let cases: [(&[&str], &str); 8] = [
        (&["--to", "https://box:7070", "--ca-file", "/none"], "/none can't be read"),
        (&["--to", "https://box:7070", "--ca-file", "/dev/null"], "/dev/null contains no certificate"),
        (&["--to", "http://box:7070", "--ca-file", "/none"], "Write the address as https://"),
        (&["--to", "https://me:secret@box"], "token"),
        (&["--to", "box"], "http://HOST:PORT"),
        (&["--to", "http://me:secret@box"], "token"),
        (&["--to", "http://127.0.0.1:9", "--out", "x.pickle"], ".vramscope"),
        (&["--to", "http://127.0.0.1:9", "--token-file", "/none"], "token can't be read"),
    ];
    for (arguments, word) in cases {
        let output = program::run(&[&["run", "alternating"], arguments].concat())?;
        let err = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len(), err.lines().count()), (Some(2), 0, 1), "{err}");
        assert!(err.contains(word), "{err}");
    }
    Ok(())
}

#[test]
fn a_run_continues_without_its_server_and_reports_what_was_not_delivered() -> Result<()> {
    let run = |url: &str| program::run(&["run", "alternating", "--rate", "0", "--json", "--to", url]);
    let (address, _) = Scripted::start([])?.go_away();
    let output = run(&format!("http://{address}"))?;
    let (report, line) = json(&output)?;
    let err = text(&output.stderr);
    assert_eq!((output.status.code(), line["events_sent"].as_u64()), (Some(2), Some(0)), "{err}");
    assert!(report["events"].as_u64() == line["events_lost"].as_u64(), "{line}");
    assert!(err.contains("Cannot reach the server") && err.contains("did not arrive"), "{err}");

    let server = Scripted::start([Act::Refuse(Code::Token, false)])?;
    let start = Instant::now();
    let output = run(&server.url())?;
    let err = text(&output.stderr);
    assert_eq!((output.status.code(), json(&output)?.1["events_sent"].as_u64()), (Some(2), Some(0)), "{err}");
    assert!(err.contains("No: Token. Name the token with --token-file FILE or the variable VRAMSCOPE_TOKEN"), "{err}");
    assert!(!err.contains("Cannot reach") && start.elapsed() < Duration::from_secs(9), "{err}");

    // A server that answers is not called unreachable, and the run goes on when it accepts the session.
    let server = Scripted::start([Act::Refuse(Code::Busy, true)])?;
    let output = run(&server.url())?;
    let err = text(&output.stderr);
    assert!(
        err.contains("The server refused the session: No: Busy. Events are kept") && !err.contains("reach"),
        "{err}"
    );
    assert!(output.status.success() && err.contains("has the whole run"), "{err}");

    // The server is away at the start and there at the end.
    let child = Command::new(program::path()?)
        .args(["run", "transformer", "--steps", "2", "--rate", "3000", "--json", "--to", &format!("http://{address}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    std::thread::sleep(Duration::from_millis(1_500));
    let server = Scripted::start_at(address, super::scripted::Store::default())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", text(&output.stderr));
    let (report, line) = json(&output)?;
    assert_eq!((line["events_sent"].as_u64(), line["events_lost"].as_u64()), (report["events"].as_u64(), Some(0)));
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(&server.file())?;
    assert_eq!(Some(decoder.events() as u64), report["events"].as_u64());
    Ok(())
}
