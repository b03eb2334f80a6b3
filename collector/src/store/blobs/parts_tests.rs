//! Tests of uploads in parts.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use object_store::path::Path;
use trace::limits::ObjectLimits;
use url::Url;

use super::client;
use super::parts::{Parts, Stop};
use super::test_s3::{React, Reaction, S3};
use crate::store::files::{Entry, Files, MemoryFiles, OpenFile, replace};
use crate::store::{StoreError, StoreResult};

/// Parts that are longer than what a system buffers of a connection whose other end reads slowly.
const LIMITS: ObjectLimits = ObjectLimits {
    part_bytes: 1 << 20,
    parts: 4,
    read_bytes: 64 << 10,
    piece_bytes: 16 << 10,
    stall_seconds: 1,
    least_bytes_per_second: 256 << 10,
    repeat_seconds: 1,
    attempts: 2,
    request_seconds: 2,
    retries: 4,
    renewal: Duration::from_secs(1),
    lease: Duration::from_secs(3),
    upload_pauses: (Duration::from_millis(1), Duration::from_millis(1)),
    release: Duration::from_secs(1),
    stop_seconds: 1,
};

impl S3 {
    /// Sends a file of so many bytes. Returns the result, and how much of the file was read.
    fn send(&self, bytes: usize, announced: u64, stop: Stop) -> (StoreResult<u64>, u64) {
        let files = Arc::new(Counted::default());
        replace(&files.files, "file", &contents(bytes)).unwrap();
        let sent = self.send_file(Arc::clone(&files), announced, stop);
        (sent, files.most())
    }

    fn send_file(&self, files: Arc<Counted>, bytes: u64, stop: Stop) -> StoreResult<u64> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (store, _) = client::open(&Url::parse("s3://b/p").unwrap(), self.variables(), LIMITS).unwrap();
        let parts = Parts::new(store.into(), files, LIMITS);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let sent = runtime.block_on(parts.send("file".to_owned(), bytes, Path::from("p/file"), stop));
        runtime.shutdown_background();
        sent
    }
}

/// Files that tell how much was read of them.
#[derive(Debug, Default)]
struct Counted {
    files: MemoryFiles,
    most: Mutex<u64>,
}

impl Counted {
    fn most(&self) -> u64 {
        *self.most.lock().unwrap()
    }
}

impl Files for Counted {
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.files.list(folder)
    }
    fn read(&self, path: &str, from: u64, most: usize) -> io::Result<Vec<u8>> {
        let bytes = self.files.read(path, from, most)?;
        let mut most = self.most.lock().unwrap();
        *most = (*most).max(from + bytes.len() as u64);
        Ok(bytes)
    }
    fn create(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
        self.files.create(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.files.remove(path)
    }
    fn remove_folder(&self, folder: &str) -> io::Result<()> {
        self.files.remove_folder(folder)
    }
    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.files.sync_folder(folder)
    }
}

fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 251) as u8).collect()
}

/// The bytes of twelve parts and a half.
const BYTES: usize = 25 << 19;

fn is_part(about: &str) -> bool {
    about.starts_with("part")
}

#[test]
fn four_parts_at_most_are_in_flight_and_no_more_are_read() {
    // Nobody ends before the test has looked.
    let s3 = S3::start(|_, about, _| if is_part(about) { Reaction::Deaf } else { Reaction::Answer });
    let files = Arc::new(Counted::default());
    replace(&files.files, "file", &contents(BYTES)).unwrap();
    let stop = Stop::default();
    thread::scope(|scope| {
        let sent = scope.spawn(|| s3.send_file(Arc::clone(&files), BYTES as u64, stop.clone()));
        s3.wait(|seen| seen.receiving == 0 && seen.requests.len() >= 5);
        // On a busy machine some are sent again by now.
        let parts: BTreeSet<String> =
            s3.seen().requests.iter().filter(|about| about.contains("part")).cloned().collect();
        assert_eq!((parts.len(), files.most()), (4, 4 << 20), "{parts:?}");
        stop.set();
        assert!(sent.join().unwrap().is_err());
    });
    let s3 = S3::start(|_, _, _| Reaction::Answer);
    let (sent, _) = s3.send(BYTES, BYTES as u64, Stop::default());
    assert_eq!(sent.unwrap(), BYTES as u64);
    let seen = s3.seen();
    assert!(seen.object.as_deref() == Some(&*contents(BYTES)) && seen.most <= 4, "{} at once", seen.most);
}

#[test]
fn a_slow_line_only_takes_long() {
    // Each part takes twice as long as a line may stand still.
    let s3 = S3::start(|_, about, _| if is_part(about) { Reaction::Slow(500_000) } else { Reaction::Answer });
    let begun = Instant::now();
    let (sent, _) = s3.send(5 << 20, 5 << 20, Stop::default());
    assert_eq!(sent.unwrap(), 5 << 20);
    assert!(begun.elapsed() > Duration::from_secs(4) && s3.count("PUT part") == 5, "{:?}", s3.seen().requests);
}

#[test]
fn a_part_that_fails_is_sent_again_alone() {
    let cases: [(&str, React); 5] = [
        (
            "refused",
            |_, about, before| if about == "part 2" && before == 0 { Reaction::Status(503) } else { Reaction::Answer },
        ),
        ("cut", |_, about, before| if about == "part 3" && before == 0 { Reaction::Lose } else { Reaction::Answer }),
        (
            "stalled",
            |_, about, before| if about == "part 1" && before == 0 { Reaction::Deaf } else { Reaction::Answer },
        ),
        (
            "unanswered",
            |_, about, before| if about == "part 5" && before == 0 { Reaction::Silent } else { Reaction::Answer },
        ),
        // Its request is not repeated after so long, so the part is begun again.
        (
            "cut late",
            |_, about, before| {
                if about == "part 2" && before == 0 { Reaction::LoseLate(500_000) } else { Reaction::Answer }
            },
        ),
    ];
    for (what, react) in cases {
        let s3 = S3::start(react);
        let (sent, _) = s3.send(5 << 20, 5 << 20, Stop::default());
        assert_eq!(sent.unwrap_or_else(|error| panic!("{what}: {error}")), 5 << 20);
        assert_eq!(s3.count("PUT part"), 6, "{what}: {:?}", s3.seen().requests);
        assert_eq!(s3.count("DELETE upload"), 0, "{what}");
    }
}

#[test]
fn an_upload_that_fails_ends_in_time_and_leaves_no_parts() {
    let cases: [(&str, bool, React); 5] = [
        ("nothing moves", true, |_, about, _| if is_part(about) { Reaction::Deaf } else { Reaction::Answer }),
        ("no answer", true, |_, about, _| if is_part(about) { Reaction::Silent } else { Reaction::Answer }),
        ("one part", true, |_, about, _| if about == "part 4" { Reaction::Silent } else { Reaction::Answer }),
        ("forbidden", false, |_, about, _| if about == "part 2" { Reaction::Status(403) } else { Reaction::Answer }),
        (
            "the end",
            true,
            |method, about, _| {
                if (method, about) == ("POST", "upload") { Reaction::Silent } else { Reaction::Answer }
            },
        ),
    ];
    let check = |(what, is_silent, react): (&str, bool, React)| {
        let s3 = S3::start(react);
        let begun = Instant::now();
        let (sent, _) = s3.send(5 << 20, 5 << 20, Stop::default());
        let Err(StoreError::Io(error)) = sent else { panic!("{what}: {sent:?}") };
        assert_eq!(error.kind() == io::ErrorKind::TimedOut, is_silent, "{what}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: {:?}", begun.elapsed());
        let seen = s3.seen();
        assert!(seen.parts.is_empty() && seen.object.is_none(), "{what}: {:?}", seen.requests);
        assert_eq!(seen.requests.iter().filter(|request| *request == "DELETE upload").count(), 1, "{what}");
    };
    thread::scope(|scope| cases.map(|case| drop(scope.spawn(move || check(case)))));
    // A file that became shorter becomes no object.
    let s3 = S3::start(|_, _, _| Reaction::Answer);
    let (sent, _) = s3.send(BYTES, BYTES as u64 + 1, Stop::default());
    assert!(matches!(sent, Err(StoreError::Damaged(_))), "{sent:?}");
    assert!(s3.seen().object.is_none() && s3.count("DELETE upload") == 1);
}

#[test]
fn a_lost_answer_to_the_end_of_an_upload_costs_nothing() {
    let s3 = S3::start(|method, about, before| match (method, about, before) {
        ("POST", "upload", 0) => Reaction::Lose,
        // As S3 does for an upload that is complete.
        ("POST", "upload", _) => Reaction::Status(404),
        _ => Reaction::Answer,
    });
    let (sent, _) = s3.send(2 << 20, 2 << 20, Stop::default());
    assert_eq!(sent.unwrap(), 2 << 20);
    assert_eq!((s3.count("PUT part"), s3.count("DELETE upload")), (2, 0));
}

#[test]
fn a_server_that_stops_waits_for_no_upload_and_leaves_no_parts() {
    for react in [
        (|_, about, _| if is_part(about) { Reaction::Silent } else { Reaction::Answer }) as React,
        |method, about, _| if is_part(about) || method == "DELETE" { Reaction::Silent } else { Reaction::Answer },
        |_, _, _| Reaction::Silent,
    ] {
        let (s3, stop) = (S3::start(react), Stop::default());
        let sent = thread::scope(|scope| {
            let sent = scope.spawn(|| s3.send(2 << 20, 2 << 20, stop.clone()));
            s3.wait(|seen| !seen.requests.is_empty());
            stop.set();
            let begun = Instant::now();
            let sent = sent.join().unwrap().0;
            assert!(begun.elapsed() < Duration::from_millis(1_900), "{:?}", begun.elapsed());
            sent
        });
        assert!(sent.is_err() && s3.seen().object.is_none());
    }
}
