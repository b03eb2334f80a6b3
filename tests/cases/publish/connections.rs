//! Connections that break, hang, or fail to open: everything arrives, once and in order.

use std::time::Duration;

use allocator::TraceSink;
use anyhow::{Context, Result};
use format::Header;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use recorder::publish::{Destination, Publisher};
use recorder::{Recorder, WhenFull};
use tests::Folder;
use tests::server::Server;
use trace::limits::PublishLimits;
use wire::Code;

use crate::scripted::{Act, Scripted, Serve};
use crate::session::{LONG, Session, check, entry, header, limits, run};

#[test]
fn everything_arrives_whatever_happens_to_connections() -> Result<()> {
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
fn where_websockets_are_blocked_requests_are_used() -> Result<()> {
    for status in [200, 403, 404, 426, 502] {
        let (stats, posts) = run(&format!("post-{status}"), vec![Act::Status(status)])?;
        assert!(stats.is_post && posts > 1, "{stats:?}");
        // Requests fail in the same ways.
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
            let folder = Folder::new("any")?;
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
            Ok(())
        };
        go().map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_long_header_is_sent_with_the_first_batch_only() -> Result<()> {
    let server = Server::start()?;
    let names = ["n", "j"].map(|letter| letter.repeat(60_000));
    let long = Header { name: names[0].clone(), job: names[1].clone(), ..header() };
    let destination = Destination::parse(&server.url())?;
    let (output, publisher) = Publisher::start(destination, limits())?;
    let (mut sinks, recorder) = Recorder::new(long).start_to(Box::new(output), "test")?;
    (0..100).for_each(|i| sinks[0].record(entry(i)));
    drop(sinks);
    recorder.finish(Vec::new());
    let published = publisher.finish(LONG);
    assert!(published.is_ended, "{published:?}");
    let listed = server.get("/api/v1/sessions")?.text();
    assert!(listed.contains(&names[0][..1_000]) && listed.contains(&names[1][..1_000]), "{listed}");
    Ok(())
}
