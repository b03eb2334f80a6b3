//! What the ingest writes to the server's log.

use std::io;
use std::sync::{Arc, Mutex};

use format::{Header, PRELUDE_BYTES, Writer};
use trace::limits::ServerLimits;
use wire::{Hello, PROTOCOL};

use super::{IngestError, Retention, Sessions};
use crate::access::{Access, Caller};
use crate::bus::LocalBus;
use crate::store::{SegmentStore, StoreError};

/// Collects the log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn sessions(store: &Arc<SegmentStore>) -> Arc<Sessions> {
    let bus = Arc::new(LocalBus::new(1 << 20));
    let store = Arc::clone(store);
    let access = Arc::new(Access::with_token("server-secret").unwrap());
    Arc::new(Sessions::open(store, bus, ServerLimits::default(), Retention::default(), access).unwrap())
}

fn hello(session: &str, key: &str, token: &str) -> Hello {
    let [session, key, token] = [session, key, token].map(str::to_owned);
    Hello { protocol: PROTOCOL, session, key, token, mode: "\u{1b}[2Jmode\n".to_owned(), header: Vec::new(), first: 0 }
}

/// A session's life: begun, resumed by another server process, ended and deleted, with refusals in between.
fn life(session: &str, key: &str) {
    let store = Arc::new(SegmentStore::in_memory(1 << 20));
    let first = sessions(&store);
    let unknown = Caller::default();
    let joined = first.join(&hello(session, key, "server-secret"), &unknown).unwrap();
    let mut chunks = Vec::new();
    Writer::new(&Header { name: "\u{1b}]0;name\u{7}".to_owned(), ..Header::default() }, &mut chunks);
    chunks.drain(..PRELUDE_BYTES);
    joined.session.append(joined.number, (1, 0), &mut chunks, (&**first.bus(), &first.counters, 0)).unwrap();
    joined.session.sync(joined.number).unwrap();
    drop(joined.connection);

    let second = sessions(&store);
    let known = Caller::with(unknown.peer, second.access().check("server-secret", unknown.peer).unwrap());
    let joined = second.join(&hello(session, key, ""), &known).unwrap();
    second.join(&hello(session, &"z".repeat(26), ""), &known).unwrap_err();
    second.join(&hello("\u{1b}[31m\nforged line", key, ""), &known).unwrap_err();
    second.join(&hello(session, key, "\u{1b}[31m\nwrong token"), &unknown).unwrap_err();
    joined.session.end(joined.number, 1).unwrap();
    drop(joined.connection);
    second.note_store_error(session, &IngestError::Store(StoreError::Full));
    second.note_store_success();
    second.remove(&joined.session).unwrap();
}

/// Returns a line without the module that wrote it.
fn without_target(line: &str) -> String {
    let (level, rest) = line.split_once(' ').unwrap();
    let (_, rest) = rest.split_once(": ").unwrap();
    format!("{level} {rest}")
}

#[test]
fn each_step_of_a_session_is_one_line_without_secrets_or_control_characters() {
    let (session, key) = ("s".repeat(26), "k".repeat(26));
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || life(&session, &key));

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    // The audit log has lines of its own.
    let (audit, lines): (Vec<&str>, Vec<&str>) =
        text.lines().map(str::trim_start).partition(|line| line.contains(" audit: "));
    let lines: Vec<String> = lines.iter().map(|line| without_target(line)).collect();
    let begins = [
        "INFO session begun",
        "INFO session resumed",
        "WARN collector refused: the session belongs to another collector",
        "WARN collector refused: a session's name and key have 26 characters",
        "WARN collector refused: the token is missing or wrong",
        "INFO session ended",
        "ERROR store error: the store is full",
        "INFO the store accepts writes again",
        "INFO session deleted",
    ];
    assert_eq!(lines.len(), begins.len(), "{text}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}");
        if begin.starts_with("INFO session") {
            assert!(line.contains(&format!("session=\"{session}\"")), "{line}");
            assert!(line.contains(" seq=") && line.contains(" bytes="), "{line}");
        }
    }
    let place = format!("who=\"default\" peer=127.0.0.1 session=\"{session}\"");
    assert_eq!(
        audit,
        [format!("INFO audit: session begun {place}"), format!("INFO audit: session resumed {place}")],
        "{text}"
    );
    for secret in [key.as_str(), "server-secret", "wrong token", "forged", "mode", "\u{1b}", "\u{7}"] {
        assert!(!text.contains(secret), "{secret:?} in {text}");
    }
}

#[test]
fn two_threads_that_save_the_catalogue_do_not_disturb_each_other() {
    let store = Arc::new(SegmentStore::in_memory(1 << 20));
    let sessions = sessions(&store);
    sessions.load().unwrap();
    let log = Log::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let writer = log.clone();
            let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
            scope.spawn(|| {
                tracing::subscriber::with_default(subscriber, || {
                    for _ in 0..500 {
                        sessions.outdate_catalogue();
                        sessions.save_catalogue_now();
                    }
                });
            });
        }
    });
    assert_eq!(String::from_utf8(log.0.lock().unwrap().clone()).unwrap(), "");
}
