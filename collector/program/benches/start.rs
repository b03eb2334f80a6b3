//! How quickly a server with very many ended sessions serves, and how much memory they take.
//!
//! `cargo bench -p vramscope --bench start` makes a folder of 100,000 sessions and starts a server in it: first without a
//! catalogue, then with one. It prints the milliseconds from the start of the process until it answers, until the first page
//! of the list is there, and until the whole store was looked through, and the server's memory then. The optional argument is
//! the number of sessions.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use format::{BatchEnd, prelude};
use vramscope::store::{Hash, Label, Record, SegmentInfo};

type Failure = Box<dyn std::error::Error>;

/// Returns the name of a session.
fn name(number: usize) -> String {
    let digits = format!("{number:026}");
    digits.bytes().map(|digit| (b'a' + digit - b'0') as char).collect()
}

/// Writes an ended session as a server leaves it.
fn write(folder: &Path, number: usize) -> Result<(), Failure> {
    let id = name(number);
    let record = Record {
        id: id.clone(),
        key_hash: "0".repeat(64),
        name: format!("train.py {number}"),
        job: "nightly".to_owned(),
        host: format!("node-{}", number % 64),
        created_us: 1_790_000_000_000_000 + number as i64,
        ended_us: Some(1_790_000_000_000_000),
        last: 1,
        retention_us: 1_795_000_000_000_000,
        ..Record::default()
    };
    let segment = SegmentInfo { number: 1, first: 1, last: 1, ..SegmentInfo::default() };
    let first = Label { record: record.clone(), segment: segment.clone(), is_last: false };
    let last = Label { record, segment, is_last: true };
    let marks = [0, 1].map(|seq| BatchEnd { seq, sent_us: 0 }.to_chunk());
    let bytes = [&prelude()[..], &first.to_chunk(), &marks[0], &marks[1], &last.to_chunk()].concat();
    let place = folder.join("segments").join(&id);
    fs::create_dir_all(&place)?;
    Ok(fs::write(place.join(format!("00000001.{}.vramscope", Hash::of(&bytes))), bytes)?)
}

/// Sends a request. Returns the response as text.
fn get(address: &str, path: &str) -> Result<String, Failure> {
    let mut socket = TcpStream::connect(address)?;
    write!(socket, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut text = Vec::new();
    socket.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Waits until a response has a property. Returns the milliseconds since `begun`.
fn until(begun: Instant, address: &str, path: &str, is_so: impl Fn(&str) -> bool) -> Result<f64, Failure> {
    loop {
        if get(address, path).is_ok_and(|text| is_so(&text)) {
            return Ok(begun.elapsed().as_secs_f64() * 1e3);
        }
        if begun.elapsed() > Duration::from_secs(300) {
            return Err(format!("{path} never came").into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the resident memory of a process in MiB.
fn memory(child: &Child) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib: f64 = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}

fn main() -> Result<(), Failure> {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let folder = tempfile::tempdir()?;
    for number in 0..count {
        write(folder.path(), number)?;
    }
    println!("{count} sessions          answers   first page   looked through   memory");
    for what in ["without a catalogue", "with a catalogue"] {
        let begun = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_vramscope"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.path())
            .env("VRAMSCOPE_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).ok_or("no address")?;
        let answers = until(begun, address, "/healthz", |text| text.contains("ok"))?;
        let page = until(begun, address, "/api/v1/sessions?limit=50", |text| text.matches("\"id\"").count() == 50)?;
        let list = "/api/v1/sessions?limit=1";
        let all = until(begun, address, list, |text| text.contains("\"loading\":false"))?;
        let total = format!("\"total\":{count}");
        assert!(get(address, list)?.contains(&total), "not all sessions are there");
        let memory = memory(&child);
        println!("{what:<20} {answers:>8.0} ms {page:>9.0} ms {all:>13.0} ms {memory:>5.0} MiB");
        // A server that stops saves its catalogue.
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
        child.wait()?;
    }
    Ok(())
}
