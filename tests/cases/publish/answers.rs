//! Messages of a server: refusals, requests, and an invalid place to resume.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use format::recording::Decoder;
use recorder::WhenFull;
use tests::Folder;
use trace::Sample;
use trace::limits::ImportLimits;
use wire::Code;

use crate::scripted::{self, Act, Scripted};
use crate::session::{LONG, Session, check, entry, limits};

#[test]
fn a_final_refusal_ends_the_publisher_but_not_the_file() -> Result<()> {
    let codes = [Code::Protocol, Code::Token, Code::Key, Code::Session, Code::Ended, Code::Malformed];
    for code in codes {
        for is_post in [false, true] {
            let folder = Folder::new("refused")?;
            let file = folder.join("beside.vramscope");
            let before = if is_post { vec![Act::Status(403)] } else { vec![] };
            let server = Scripted::start(before.into_iter().chain([Act::Refuse(code, false)]))?;
            let mut session = Session::start(&server.url(), &file, limits(), WhenFull::Wait)?;
            session.record(100);
            server.until("a refusal", |store| store.connections == 1 + usize::from(is_post));
            session.record_slowly(10, 100);
            let start = Instant::now();
            let (recorded, published) = session.finish(LONG);
            assert!(start.elapsed() < Duration::from_secs(5), "it waits in vain");
            assert_eq!((recorded.events, recorded.lost, recorded.failure), (1_100, 0, None));
            assert_eq!(published.failure, Some(format!("No: {code:?}.")));
            assert_eq!((published.events, published.undelivered(), published.is_ended), (1_100, 1_100, false));
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(server.store.lock().unwrap().connections, 1 + usize::from(is_post), "it connected again");
            let mut decoder = Decoder::new(ImportLimits::default());
            decoder.push(&fs::read(&file)?)?;
            assert_eq!(decoder.events(), 1_100);
        }
    }
    Ok(())
}

#[test]
fn a_server_can_ask_and_ping_and_an_idle_session_stays_connected() -> Result<()> {
    let folder = Folder::new("asks")?;
    let file = folder.join("beside.vramscope");
    let server = Scripted::start([])?;
    server.store.lock().unwrap().ask = Some("history".to_owned());
    let mut session = Session::start(&server.url(), &file, limits(), WhenFull::Count)?;
    let asks = session.publisher.asks().context("no questions")?;
    assert!(session.publisher.asks().is_none());
    assert_eq!(asks.recv_timeout(LONG)?.what, "history");
    server.until("a pong", |store| store.pongs == [[7; 5]]);
    session.record(10);
    // Several times the time that a server may be silent.
    std::thread::sleep(Duration::from_millis(1_500));
    let stats = session.publisher.stats();
    assert_eq!((stats.connections, stats.is_connected), (1, true), "{stats:?}");
    session.recorder.statistics(0, Sample { time_us: 5, allocated: 1, active: 2, reserved: 3 });
    session.sink.record_at(entry(10), -77);
    session.next = 11;
    session.finish(LONG);
    check(&server, &file, 11)?;
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(&server.file())?;
    let track = decoder.recording().devices.get(0).context("no device")?;
    assert_eq!(track.trace.samples, [Sample { time_us: 5, allocated: 1, active: 2, reserved: 3 }]);
    assert_eq!(track.trace.events.get(10).map(|event| event.time_us), Some(-77));
    Ok(())
}

#[test]
fn a_server_that_lost_the_session_is_an_error() -> Result<()> {
    let folder = Folder::new("forgot")?;
    let file = folder.join("beside.vramscope");
    let server = Scripted::start([])?;
    let mut session = Session::start(&server.url(), &file, limits(), WhenFull::Count)?;
    session.record(1_000);
    server.until("all", |store| !store.batches.is_empty());
    std::thread::sleep(Duration::from_millis(50));
    let (address, store) = server.go_away();
    let kept = scripted::Store { hello: store.hello, ..scripted::Store::default() };
    let _server = Scripted::start_at(address, kept)?;
    session.record(1_000);
    let (_, published) = session.finish(LONG);
    let failure = published.failure.context("no failure")?;
    assert!(failure.contains("lost data of this session"), "{failure}");
    Ok(())
}
