//! The publisher: whatever a server or the network does, what was recorded arrives once and in order, or is counted;
//! and whoever records never waits for it.

mod program;
mod scripted;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use scripted::{Act, Scripted, Serve};
use shared::allocator::{TraceEntry, TraceSink};
use shared::event::Action;
use shared::format::{Decoder, Device, Header};
use shared::frames::StackId;
use shared::limits::{ImportLimits, PublishLimits, RecorderLimits};
use shared::trace::{Sample, Stage};
use shared::units::{PoolId, Stream};
use shared::wire::Code;
use tests::empty_folder;
use vramscope::publish::{Destination, Publisher, PublisherHandle, PublisherStats};
use vramscope::recorder::{FileOutput, Recorder, RecorderHandle, RecorderSink, RecorderStats, Tee, WhenFull};

const LONG: Duration = Duration::from_secs(30);

/// Impatient, so that a test takes no longer than it must.
fn limits() -> PublishLimits {
    PublishLimits {
        batch_bytes: 2_000,
        post_bytes: 5_000,
        post_millis: 5,
        connect_millis: 1_000,
        answer_millis: 400,
        idle_millis: 100,
        backoff_millis: 5,
        backoff_cap_millis: 40,
        socket_millis: 60_000,
        ..PublishLimits::default()
    }
}

fn header() -> Header {
    let device = Device { number: 0, name: "simulated".to_owned(), capacity: 80 << 30 };
    Header { program: "test".to_owned(), name: "published".to_owned(), devices: vec![device], ..Header::default() }
}

/// Event `i` of an endless program, unlike those beside it.
fn entry(i: u64) -> TraceEntry {
    let action = [Action::Alloc, Action::FreeRequested, Action::FreeCompleted][(i % 3) as usize];
    // Mixed well, so that it packs no better than a real program's.
    let mixed = (i / 3 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let place = mixed >> 30 << 9;
    TraceEntry {
        action,
        address: place,
        size: place % 100_003,
        stream: Stream(0),
        pool: PoolId(0, 0),
        stack: StackId(0),
    }
}

/// A recording to a server and to a file.
struct Session {
    sink: RecorderSink,
    recorder: RecorderHandle,
    publisher: PublisherHandle,
    next: u64,
}

impl Session {
    fn start(url: &str, file: &Path, limits: PublishLimits, when_full: WhenFull) -> Result<Self> {
        let destination = Destination::parse(url)?.token(Some("open sesame".to_owned())).mode("simulated");
        let spool = file.with_extension("spool");
        let (output, publisher) = Publisher::start(destination.spool(spool), limits)?;
        let (output, _) = Tee::new(FileOutput::create(file)?, output);
        let flush = RecorderLimits { flush_millis: 2, room_millis: 20_000, ..RecorderLimits::default() };
        let recorder = Recorder::new(header()).when_full(when_full).limits(flush);
        let (mut sinks, recorder) = recorder.start_to(Box::new(output), "test")?;
        Ok(Self { sink: sinks.pop().context("no sink")?, recorder, publisher, next: 0 })
    }

    fn record(&mut self, count: u64) {
        (self.next..self.next + count).for_each(|i| self.sink.record(entry(i)));
        self.next += count;
    }

    /// Some events at a time, with the writer's turns between.
    fn record_slowly(&mut self, rounds: u64, count: u64) {
        for round in 0..rounds {
            self.record(count);
            self.recorder.mark(0, &format!("round {round}"), Stage::Instant);
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Waits until something is so of the publisher.
    fn until(&self, what: &str, is_so: impl Fn(&PublisherStats) -> bool) -> PublisherStats {
        let start = Instant::now();
        loop {
            let stats = self.publisher.stats();
            if is_so(&stats) {
                return stats;
            }
            assert!(start.elapsed() < LONG, "{what} never came: {stats:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn finish(self, time: Duration) -> (RecorderStats, PublisherStats) {
        (self.recorder.finish(Vec::new()), self.publisher.finish(time))
    }
}

/// What came holds exactly events 0 to before `count`, in order, and is the file byte for byte.
fn check(server: &Scripted, file: &Path, count: u64) -> Result<()> {
    let got = server.file();
    assert!(got == fs::read(file)?, "{} bytes came, which are not those of the file", got.len());
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(&got)?;
    let (snapshot, findings, header) = decoder.finish()?;
    assert_eq!(header.map(|header| header.name).as_deref(), Some("published"));
    assert_eq!(findings, []);
    let events = &snapshot.devices[0].events;
    assert_eq!(events.len() as u64, count);
    for (i, event) in events.iter().enumerate() {
        let want = entry(i as u64);
        assert_eq!((event.action, event.address.0, event.size), (want.action, want.address, want.size), "event {i}");
    }
    let store = server.store.lock().unwrap();
    assert_eq!(store.faults, Vec::<String>::new());
    assert_eq!(store.ended, Some(store.batches.len() as u64));
    let hello = store.hello.clone().context("no hello")?;
    assert_eq!((hello.token.as_str(), hello.mode.as_str()), ("open sesame", "simulated"));
    Ok(())
}

/// A session under a script; how it went.
fn run(name: &str, script: Vec<Act>) -> Result<(PublisherStats, usize)> {
    let folder = empty_folder(name)?;
    let file = folder.join("beside.vramscope");
    let server = Scripted::start(script)?;
    let mut session = Session::start(&server.url(), &file, limits(), WhenFull::Wait)?;
    session.record_slowly(40, 200);
    let (recorded, published) = session.finish(LONG);
    assert_eq!((recorded.events, recorded.lost), (8_000, 0));
    assert!(published.is_ended, "{published:?}");
    assert_eq!((published.undelivered(), published.failure.clone()), (0, None));
    assert_eq!((published.batches, published.events), (published.batches_acked, 8_000));
    check(&server, &file, 8_000)?;
    fs::remove_dir_all(folder)?;
    let posts = server.store.lock().unwrap().posts;
    Ok((published, posts))
}

#[test]
fn what_is_recorded_arrives_whatever_becomes_of_connections() -> Result<()> {
    let serve = Serve::default();
    let late = Serve { delay: Duration::from_millis(30), ack_every: 3, ..serve.clone() };
    let cases: Vec<(&str, Vec<Act>, u64)> = vec![
        ("well", vec![], 1),
        ("acks-late", vec![Act::Serve(late)], 1),
        ("drops", vec![Act::Drop; 5], 1),
        ("cut", (1..8).map(|i| Act::Serve(Serve { cut_after: Some(i * 777), ..serve.clone() })).collect(), 2),
        ("cut-early", (1..30).map(|i| Act::Serve(Serve { cut_after: Some(i * 17), ..serve.clone() })).collect(), 1),
        ("closes", (0..6).map(|i| Act::Serve(Serve { close_after: Some(i), ..serve.clone() })).collect(), 6),
        ("torn", vec![Act::Serve(Serve { torn_answer: true, ..serve.clone() }); 3], 1),
        ("hangs", vec![Act::Hang, Act::Serve(Serve { hang_after: Some(2), ..serve.clone() })], 2),
        ("goodbye", vec![Act::Serve(Serve { no_goodbye: true, ..serve.clone() })], 2),
        (
            "busy",
            vec![Act::Refuse(Code::Busy, true), Act::Refuse(Code::Restart, true), Act::Refuse(Code::Full, true)],
            1,
        ),
    ];
    for (name, script, connections) in cases {
        let (stats, posts) = run(name, script).context(name)?;
        assert!(stats.connections >= connections && posts == 0, "{name}: {stats:?}");
    }
    Ok(())
}

#[test]
fn where_sockets_cannot_pass_requests_do() -> Result<()> {
    for status in [200, 403, 404, 426, 502] {
        let (stats, posts) = run(&format!("post-{status}"), vec![Act::Status(status)])?;
        assert!(stats.is_post && posts > 1, "{stats:?}");
        // Requests fail as sockets do.
        let script = vec![
            Act::Status(status),
            Act::Drop,
            Act::Status(503),
            Act::Serve(Serve { cut_after: Some(900), ..Serve::default() }),
            Act::Hang,
            Act::Refuse(Code::Busy, true),
        ];
        let (stats, _) = run(&format!("post-{status}-faults"), script)?;
        assert!(stats.is_post, "{stats:?}");
    }
    Ok(())
}

#[test]
fn a_refusal_for_good_ends_the_publisher_and_not_the_file() -> Result<()> {
    let codes = [Code::Protocol, Code::Token, Code::Key, Code::Session, Code::Ended, Code::Malformed];
    for code in codes {
        for is_post in [false, true] {
            let folder = empty_folder("refused")?;
            let file = folder.join("beside.vramscope");
            let before = if is_post { vec![Act::Status(403)] } else { vec![] };
            let server = Scripted::start(before.into_iter().chain([Act::Refuse(code, false)]))?;
            let mut session = Session::start(&server.url(), &file, limits(), WhenFull::Wait)?;
            session.record(100);
            server.until("a refusal", |store| store.connections == 1 + usize::from(is_post));
            session.record_slowly(10, 100);
            let start = Instant::now();
            let (recorded, published) = session.finish(LONG);
            assert!(start.elapsed() < Duration::from_secs(5), "it waits for what will not come");
            assert_eq!((recorded.events, recorded.lost, recorded.failure), (1_100, 0, None));
            assert_eq!(published.failure, Some(format!("No: {code:?}.")));
            assert_eq!((published.events, published.undelivered(), published.is_ended), (1_100, 1_100, false));
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(server.store.lock().unwrap().connections, 1 + usize::from(is_post), "it tries again");
            let mut decoder = Decoder::new(ImportLimits::default());
            decoder.push(&fs::read(&file)?)?;
            assert_eq!(decoder.events(), 1_100);
            fs::remove_dir_all(folder)?;
        }
    }
    Ok(())
}

#[test]
fn while_the_server_is_away_the_rest_waits_in_memory_and_then_on_disk() -> Result<()> {
    let folder = empty_folder("away")?;
    let file = folder.join("beside.vramscope");
    let limits = PublishLimits { memory_bytes: 10_000, spool_file_bytes: 30_000, ..limits() };
    let server = Scripted::start([])?;
    let url = server.url();
    let mut session = Session::start(&url, &file, limits, WhenFull::Wait)?;
    session.record(1_000);
    server.until("some batches", |store| !store.batches.is_empty());
    let (address, store) = server.go_away();
    let stored = store.batches.len();
    for _ in 0..100 {
        session.record(500);
        std::thread::sleep(Duration::from_millis(1));
    }
    let away = session.until("all events", |stats| stats.events == 51_000);
    assert!(away.spool_bytes > 100_000 && !away.is_connected, "{away:?}");
    assert!(away.memory_bytes < 20_000 && away.trouble.is_some(), "{away:?}");
    // Nobody finds the files, and they are gone with the process.
    assert_eq!(fs::read_dir(file.with_extension("spool"))?.count(), 0);
    let server = Scripted::start_at(address, store)?;
    session.record(1_000);
    let (recorded, published) = session.finish(LONG);
    assert_eq!((recorded.events, recorded.lost, published.undelivered()), (52_000, 0, 0));
    assert_eq!((published.spool_bytes, published.memory_bytes), (0, 0));
    check(&server, &file, 52_000)?;
    assert!(server.store.lock().unwrap().batches.len() > stored + 5);
    fs::remove_dir_all(folder)?;
    Ok(())
}

#[test]
fn when_the_disk_is_full_too_what_is_lost_is_counted_and_stands_as_a_gap() -> Result<()> {
    for has_disk in [true, false] {
        let folder = empty_folder("full")?;
        let file = folder.join("beside.vramscope");
        let limits = PublishLimits { memory_bytes: 20_000, spool_bytes: 50_000, spool_file_bytes: 10_000, ..limits() };
        let server = Scripted::start([])?;
        if !has_disk {
            // A file where the folder would be.
            fs::write(file.with_extension("spool"), "")?;
        }
        let mut session = Session::start(&server.url(), &file, limits, WhenFull::Count)?;
        session.record(300);
        server.until("some batches", |store| !store.batches.is_empty());
        let (address, store) = server.go_away();
        let start = Instant::now();
        for _ in 0..100 {
            session.record(600);
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(start.elapsed() < Duration::from_secs(10), "who records has waited");
        let full = if has_disk { 70_000 } else { 20_000 };
        session.until("no room", |stats| stats.memory_bytes + stats.spool_bytes >= full);
        // The recorder's thread has its own time to find that out for all the rest.
        std::thread::sleep(Duration::from_secs(1));
        let away = session.publisher.stats();
        assert!(away.spool_bytes + away.memory_bytes < 90_000, "{away:?}");
        assert_eq!(away.spool_failure.is_some(), !has_disk, "{away:?}");
        let server = Scripted::start_at(address, store)?;
        let before = server.store.lock().unwrap().batches.len();
        server.until("the rest", |store| store.batches.len() > before + 5);
        std::thread::sleep(Duration::from_millis(100));
        session.record(900);
        let total = session.next;
        let (recorded, published) = session.finish(LONG);
        assert_eq!(recorded.events + recorded.lost, total);
        assert!(recorded.lost > 10_000, "{recorded:?}");
        assert_eq!((published.events, published.undelivered()), (recorded.events, 0));

        let got = server.file();
        assert!(got == fs::read(&file)?);
        let mut decoder = Decoder::new(ImportLimits::default());
        decoder.push(&got)?;
        let track = decoder.recording().devices.get(0).context("no device")?;
        let missing = &track.missing;
        assert_eq!(missing.iter().map(|m| m.gap.to - m.gap.from).sum::<u64>(), recorded.lost);
        // Not one for each event that found no room.
        assert!(!missing.is_empty() && missing.len() < 20, "{} gaps", missing.len());
        for m in missing {
            let mut want = [0; Action::ALL.len()];
            (m.gap.from..m.gap.to).for_each(|i| want[entry(i).action as usize] += 1);
            assert_eq!(m.gap.by_action, want);
        }
        let lost_before = |position: usize| -> u64 {
            missing.iter().filter(|m| m.position as usize <= position).map(|m| m.gap.to - m.gap.from).sum()
        };
        for (position, event) in track.trace.events.iter().enumerate() {
            let want = entry(position as u64 + lost_before(position));
            assert_eq!((event.action, event.address.0), (want.action, want.address), "event {position}");
        }
        assert_eq!(track.trace.events.len() as u64 + recorded.lost, total);
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}

#[test]
fn who_would_rather_wait_waits_for_a_slow_server() -> Result<()> {
    let folder = empty_folder("slow")?;
    let file = folder.join("beside.vramscope");
    let limits = PublishLimits { memory_bytes: 5_000, spool_bytes: 0, ..limits() };
    let server = Scripted::start([Act::Serve(Serve { delay: Duration::from_millis(5), ..Serve::default() })])?;
    let mut session = Session::start(&server.url(), &file, limits, WhenFull::Wait)?;
    // Far more than all that has room anywhere on the way.
    session.record(200_000);
    let (recorded, published) = session.finish(LONG);
    assert_eq!((recorded.events, recorded.lost, published.undelivered()), (200_000, 0, 0));
    check(&server, &file, 200_000)?;
    fs::remove_dir_all(folder)?;
    Ok(())
}

#[test]
fn a_server_that_never_comes_costs_what_was_given_to_the_end() -> Result<()> {
    let folder = empty_folder("never")?;
    let file = folder.join("beside.vramscope");
    // Nobody listens there any more.
    let (address, _) = Scripted::start([])?.go_away();
    let mut session = Session::start(&format!("http://{address}"), &file, limits(), WhenFull::Count)?;
    session.record(5_000);
    assert!(!session.publisher.wait_connected(Duration::from_secs(5)));
    let trouble = session.publisher.stats().trouble.context("no trouble")?;
    assert!(trouble.contains(&address.to_string()) && trouble.lines().count() == 1, "{trouble}");
    let start = Instant::now();
    let (recorded, published) = session.finish(Duration::from_millis(300));
    assert!((Duration::from_millis(300)..Duration::from_secs(3)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!((recorded.events, recorded.lost, published.undelivered()), (5_000, 0, 5_000));
    assert!(!published.is_ended && published.connections == 0, "{published:?}");

    // One that hangs is no different, and nor is a handle that is dropped.
    for is_dropped in [false, true] {
        let server = Scripted::start(vec![Act::Hang; 50])?;
        let limits = PublishLimits { answer_millis: 60_000, drop_millis: 300, ..limits() };
        let mut session = Session::start(&server.url(), &file, limits, WhenFull::Count)?;
        session.record(5_000);
        server.until("a connection", |store| store.connections > 0);
        let start = Instant::now();
        if is_dropped {
            drop(session);
        } else {
            assert_eq!(session.finish(Duration::from_millis(300)).1.undelivered(), 5_000);
        }
        let took = start.elapsed();
        assert!((Duration::from_millis(250)..Duration::from_secs(3)).contains(&took), "{took:?}");
    }
    fs::remove_dir_all(folder)?;
    Ok(())
}

#[test]
fn a_server_can_ask_and_ping_and_an_idle_session_stays() -> Result<()> {
    let folder = empty_folder("asks")?;
    let file = folder.join("beside.vramscope");
    let server = Scripted::start([])?;
    server.store.lock().unwrap().ask = Some("history".to_owned());
    let mut session = Session::start(&server.url(), &file, limits(), WhenFull::Count)?;
    let asks = session.publisher.asks().context("no questions")?;
    assert!(session.publisher.asks().is_none());
    assert_eq!(asks.recv_timeout(LONG)?.what, "history");
    server.until("a pong", |store| store.pongs == [[7; 5]]);
    session.record(10);
    // Several times as long as a server may be silent.
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
    fs::remove_dir_all(folder)?;
    Ok(())
}

#[test]
fn a_server_that_lost_the_session_is_told_of_and_left_alone() -> Result<()> {
    let folder = empty_folder("forgot")?;
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
    assert!(failure.contains("lost what it had"), "{failure}");
    fs::remove_dir_all(folder)?;
    Ok(())
}

fn act() -> impl Strategy<Value = Act> {
    let serve = (
        prop::option::of(0_usize..30_000),
        prop::option::of(0_usize..20),
        prop::option::weighted(0.1, 0_usize..20),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.2),
        0_usize..5,
        0_u64..8,
    );
    let serve = serve.prop_map(|(cut_after, close_after, hang_after, torn_answer, no_goodbye, ack_every, delay)| {
        let delay = Duration::from_millis(delay);
        Act::Serve(Serve { delay, cut_after, close_after, hang_after, torn_answer, no_goodbye, ack_every })
    });
    let refuse = prop::sample::select(vec![Code::Busy, Code::Full, Code::Restart, Code::Order]);
    prop_oneof![
        6 => serve,
        1 => refuse.prop_map(|code| Act::Refuse(code, true)),
        1 => prop::sample::select(vec![200, 403, 503]).prop_map(Act::Status),
        1 => Just(Act::Hang),
        2 => Just(Act::Drop),
    ]
}

#[test]
fn under_any_script_everything_arrives_once_in_order() {
    let limits = PublishLimits {
        memory_bytes: 20_000,
        spool_file_bytes: 9_000,
        answer_millis: 60,
        idle_millis: 20,
        socket_millis: 50,
        ..limits()
    };
    let config = Config { cases: 24, max_shrink_iters: 50, failure_persistence: None, ..Config::default() };
    let script = (prop::collection::vec(act(), 0..12), 1_u64..60, 1_u64..900);
    let result = TestRunner::new(config).run(&script, |(script, rounds, count)| {
        let go = || -> Result<()> {
            let folder = empty_folder("any")?;
            let file = folder.join("beside.vramscope");
            let server = Scripted::start(script)?;
            let mut session = Session::start(&server.url(), &file, limits, WhenFull::Wait)?;
            for _ in 0..rounds {
                session.record(count);
                std::thread::sleep(Duration::from_micros(700));
            }
            let (_, published) = session.finish(LONG);
            assert!(published.is_ended, "{published:?}");
            check(&server, &file, rounds * count)?;
            Ok(fs::remove_dir_all(folder)?)
        };
        go().map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
