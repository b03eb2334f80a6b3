//! Tests of the store after a power cut, a kill, or a failure of the disk at every single call.

use std::io;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use format::{EventColumns, Header, PRELUDE_BYTES, Writer};
use tower::ServiceExt;
use trace::event::Action;
use trace::frames::StackId;
use trace::limits::{ServerLimits, WireLimits};
use trace::units::Address;
use trace::{Event, TagId};
use wire::{Batch, Decoder, Goodbye, Hello, Message, PROTOCOL};

use super::{App, Hosts, router};
use crate::bus::LocalBus;
use crate::ingest::{Retention, Sessions};
use crate::store::SegmentStore;
use crate::store::files::{MemoryFiles, PowerCut};

const BATCHES: u64 = 9;

/// A recording of some batches, and how it is sent.
struct Recording {
    hello: Hello,
    batches: Vec<Vec<u8>>,
}

impl Recording {
    fn new() -> Self {
        let header = Header { name: "power".to_owned(), ..Header::default() };
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&header, &mut bytes);
        let mut from = PRELUDE_BYTES;
        let mut batches = Vec::new();
        for batch in 0..BATCHES {
            let mut columns = EventColumns::default();
            for event in 0..40 {
                let (number, size) = (batch * 40 + event, 512 << (event % 9));
                columns.push(Event {
                    action: Action::Alloc,
                    address: Address(0x7f00_0000_0000 + (number << 21)),
                    size,
                    time_us: 1_700_000_000_000_000 + number as i64,
                    tag: TagId(0),
                    stack: StackId(0),
                });
            }
            writer.events(0, batch * 40, &columns, &mut bytes);
            batches.push(bytes[from..].to_vec());
            from = bytes.len();
        }
        let hello = Hello { protocol: PROTOCOL, session: "s".repeat(26), key: "k".repeat(26), ..Hello::default() };
        Self { hello, batches }
    }

    fn messages(&self, seqs: std::ops::Range<u64>) -> Vec<u8> {
        let mut body = Message::Hello(self.hello.clone()).to_bytes();
        for seq in seqs {
            Message::Batch(Batch { seq, sent_us: 0, chunks: &self.batches[seq as usize - 1] }).encode(&mut body);
        }
        body
    }

    /// Returns what a download must hold.
    fn file(&self) -> Vec<u8> {
        [&format::prelude()[..], &self.batches.concat()].concat()
    }
}

/// A server of a folder, without a socket.
struct Folder {
    app: App,
}

impl Folder {
    fn open(files: &MemoryFiles) -> Self {
        let limits = ServerLimits { segment_bytes: 1_500, ..ServerLimits::default() };
        let store = Arc::new(SegmentStore::in_folder(Arc::new(files.clone()), 1 << 30));
        let bus = Arc::new(LocalBus::new(1 << 20));
        let sessions = Sessions::open(store, bus, limits, Retention::default(), Arc::default()).unwrap();
        Self { app: App::new(sessions, Hosts::new("127.0.0.1:7070".parse().unwrap(), &[])) }
    }

    async fn ask(&self, method: Method, path: &str, body: Vec<u8>) -> (StatusCode, Option<Vec<u8>>) {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let response = router(self.app.clone()).oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        (response.status(), to_bytes(response.into_body(), 1 << 30).await.ok().map(|bytes| bytes.to_vec()))
    }

    /// Sends messages of a collector. Returns the batch that the server expected, and the last one that it acknowledged.
    async fn send(&self, messages: Vec<u8>) -> (Option<u64>, Option<u64>) {
        let (_, answer) = self.ask(Method::POST, "/api/v1/ingest", messages).await;
        let (mut next, mut acked) = (None, None);
        let _ = Decoder::new(&WireLimits::default()).push(&answer.unwrap_or_default(), &mut |message| match message {
            Message::Welcome(welcome) => next = Some(welcome.next),
            Message::Ack(ack) => acked = Some(ack.seq),
            _ => {}
        });
        (next, acked)
    }

    /// Sends the rest of a recording, ends it and compares the download. `acked` is the last acknowledged batch.
    async fn finish(&self, recording: &Recording, acked: u64, what: &str) {
        self.app.sessions.load().unwrap();
        let (next, _) = self.send(recording.messages(0..0)).await;
        let next = next.unwrap_or_else(|| panic!("{what}: not welcome"));
        assert!(next > acked, "{what}: {acked} batches were acknowledged, and {next} is wanted");
        let mut rest = recording.messages(next..BATCHES + 1);
        Message::Goodbye(Goodbye { seq: BATCHES }).encode(&mut rest);
        assert_eq!(self.send(rest).await.1, Some(BATCHES), "{what}");
        let path = format!("/api/v1/sessions/{}/trace", recording.hello.session);
        let (status, file) = self.ask(Method::GET, &path, Vec::new()).await;
        assert_eq!(status, StatusCode::OK, "{what}");
        let notes = self
            .app
            .sessions
            .get(&recording.hello.session)
            .map(|session| session.look(|view| format!("{:?} {:?}", view.record.notes, view.segments)));
        assert_same(file.as_deref(), &recording.file(), &format!("{what}: {notes:?}"));
    }
}

/// Compares a download with what was sent.
fn assert_same(got: Option<&[u8]>, want: &[u8], what: &str) {
    let got = got.unwrap_or_default();
    let differs = got.iter().zip(want).position(|(a, b)| a != b);
    assert!(got == want, "{what}: {} bytes for {}, the first other one at {differs:?}", got.len(), want.len());
}

/// Records everything with a server that is closed and opened again in the middle. Returns for each acknowledgement how many
/// changes the disk had seen.
async fn record(files: &MemoryFiles, recording: &Recording) -> Vec<(usize, u64)> {
    let mut acks = Vec::new();
    let mut folder = Folder::open(files);
    for seq in 1..=BATCHES {
        if seq == 6 {
            folder.app.sessions.close_all();
            folder = Folder::open(files);
            folder.app.sessions.load().unwrap();
        }
        let (_, acked) = folder.send(recording.messages(seq..seq + 1)).await;
        acks.push((files.changes(), acked.unwrap()));
    }
    let mut end = recording.messages(0..0);
    Message::Goodbye(Goodbye { seq: BATCHES }).encode(&mut end);
    folder.send(end).await;
    acks
}

#[tokio::test]
async fn whenever_the_power_fails_every_acknowledged_batch_is_there() {
    let recording = Recording::new();
    let files = MemoryFiles::recording();
    let acks = record(&files, &recording).await;
    assert!(files.changes() > 60, "{} changes", files.changes());
    for changes in 0..=files.changes() {
        let acked = acks.iter().rev().find(|(before, _)| *before <= changes).map_or(0, |(_, acked)| *acked);
        for cut in PowerCut::ALL {
            let what = format!("{cut:?} after {changes} changes");
            let survivors = files.after(changes, cut);
            let folder = Folder::open(&survivors);
            // The end of the session is one change: after it, nothing more is accepted, and nothing more is needed.
            folder.app.sessions.load().unwrap();
            let is_over = folder.app.sessions.get(&recording.hello.session);
            if is_over.is_some_and(|session| session.look(|view| view.record.ended_us.is_some())) {
                let path = format!("/api/v1/sessions/{}/trace", recording.hello.session);
                let (_, file) = folder.ask(Method::GET, &path, Vec::new()).await;
                assert_same(file.as_deref(), &recording.file(), &what);
                continue;
            }
            folder.finish(&recording, acked, &what).await;
        }
    }
}

#[tokio::test]
async fn whatever_call_fails_every_acknowledged_batch_is_there() {
    let recording = Recording::new();
    let failures = [(io::ErrorKind::Other, false), (io::ErrorKind::Other, true), (io::ErrorKind::StorageFull, false)];
    for (error, once) in failures {
        for calls in 0..100 {
            let files = MemoryFiles::default();
            if once {
                files.fail_once_after(calls, error);
            } else {
                files.fail_after(calls, error);
            }
            let mut folder = Folder::open(&files);
            let mut acked = 0;
            // It fails, and everything after it, until the second try.
            for round in 0..2 {
                for seq in acked + 1..=BATCHES {
                    let Some(now) = folder.send(recording.messages(seq..seq + 1)).await.1 else { break };
                    acked = acked.max(now);
                }
                if round == 0 {
                    files.heal();
                }
                // Every second time with another server.
                if calls % 2 == 0 {
                    folder = Folder::open(&files);
                }
            }
            folder.finish(&recording, acked, &format!("{error:?} after {calls} calls, once: {once}")).await;
        }
    }
}
