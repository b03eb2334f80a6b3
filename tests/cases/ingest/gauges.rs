//! The gauges of live sessions: what they tell of a session's memory, how many there are, and the rules that use them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use format::{Header, LostEvents, Writer};
use tests::peer::Peer;
use tests::stream::{START_US, Stream};
use tests::{http, workspace};
use trace::event::Action;
use trace::limits::ServerLimits;
use trace::units::Address;
use trace::{Event, TagId};
use vramscope::ingest::Retention;

use crate::inside::{Inside, small};

const BASE: u64 = 0x7f00_0000_0000;
const BLOCK: u64 = 2 << 20;

/// Six blocks of 2 MiB that fill a segment. The second batch frees every other one, the third the rest, and the fourth
/// has no event.
fn alternating(seed: u64) -> Stream {
    let mut time_us = START_US;
    Stream::of(seed, "a \"quoted\"\njob", 4, |batch, stack| {
        let mut events = Vec::new();
        let mut push = |action, address, size| {
            time_us += 1_000;
            events.push(Event { action, address: Address(address), size, time_us, tag: TagId(0), stack });
        };
        if batch == 0 {
            push(Action::SegmentAlloc, BASE, 6 * BLOCK);
        }
        let is_in = |block: &u64| batch == 0 || batch == 1 + (*block as usize % 2);
        for block in (0..6).filter(is_in) {
            let address = BASE + block * BLOCK;
            if batch == 0 {
                push(Action::Alloc, address, BLOCK);
            } else {
                push(Action::FreeRequested, address, BLOCK);
                push(Action::FreeCompleted, address, BLOCK);
            }
        }
        events
    })
}

fn metrics(server: &Inside) -> Result<String> {
    Ok(http::get(server.address, "/metrics", &[])?.text())
}

/// Waits until the metrics have all these lines.
fn wait(server: &Inside, wanted: &[String]) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let text = metrics(server)?;
        let missing: Vec<_> = wanted.iter().filter(|line| !text.lines().any(|own| own == line.as_str())).collect();
        if missing.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "no {missing:#?} in\n{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_live_session_has_gauges_of_its_memory() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = alternating(80);
    let session = stream.session();
    // After each batch: allocated, inactive split, cached whole and largest servable, in blocks of 2 MiB.
    let after = [[6, 0, 0, 0], [3, 3, 0, 1], [0, 0, 6, 6]];
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    for (seq, [allocated, split, whole, largest]) in (1..).zip(after) {
        peer.batch(seq, stream.batch(seq))?;
        peer.acked(seq)?;
        let labels = format!("session=\"{session}\",device=\"0\"");
        let line = |name: &str, more: &str, bytes: u64| format!("vramscope_session_{name}{{{labels}{more}}} {bytes}");
        wait(
            &server,
            &[
                line("allocated_bytes", "", allocated * BLOCK),
                line("active_bytes", "", allocated * BLOCK),
                line("reserved_bytes", "", 6 * BLOCK),
                line("inactive_split_bytes", "", split * BLOCK),
                line("cached_whole_bytes", "", whole * BLOCK),
                line("largest_servable_bytes", ",pool=\"small\"", 0),
                line("largest_servable_bytes", ",pool=\"large\"", largest * BLOCK),
                line("capacity_bytes", "", 80 << 30),
                line("ooms", "", 0),
                line("events_lost", "", 0),
                format!(
                    "vramscope_session_info{{session=\"{session}\",name=\"a \\\"quoted\\\"\\njob\",\
                     job_name=\"a \\\"quoted\\\"\\njob\",host=\"node-1\",rank=\"0\"}} 1"
                ),
            ],
        )?;
    }
    peer.batch(4, stream.batch(4))?;
    peer.end(4)?;
    assert!(!metrics(&server)?.contains(session), "a session that has ended has no gauges");
    Ok(())
}

/// A job that dies of a failure is gone before anyone looks: the counter of all jobs stays.
#[test]
fn failures_are_counted_beyond_the_end_of_their_session() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::of(85, "job", 2, |_, stack| {
        let failed =
            Event { action: Action::Oom, address: Address(0), size: BLOCK, time_us: START_US, tag: TagId(0), stack };
        vec![failed; 2]
    });
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    wait(&server, &["vramscope_ooms_total 0".to_owned()])?;
    for seq in 1..=2 {
        peer.batch(seq, stream.batch(seq))?;
        peer.acked(seq)?;
    }
    peer.end(2)?;
    let text = metrics(&server)?;
    assert!(!text.contains(stream.session()) && text.contains("\nvramscope_ooms_total 4\n"), "{text}");
    Ok(())
}

#[test]
fn the_number_of_gauges_is_bounded() -> Result<()> {
    let server = Inside::start(ServerLimits { gauge_devices: 2, ..small() }, Retention::default())?;
    let streams = [81, 82, 83].map(alternating);
    let mut peers = Vec::new();
    for stream in &streams {
        let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
        peer.batch(1, stream.batch(1))?;
        peer.acked(1)?;
        peers.push(peer);
    }
    let text = metrics(&server)?;
    let has = streams.each_ref().map(|stream| text.contains(stream.session()));
    assert_eq!(has, [false, true, true], "the newest ones: {text}");
    assert!(text.contains("vramscope_session_gauges_left_out 1\n"), "{text}");
    Ok(())
}

/// Returns every metric that a text names.
fn names(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).filter(|word| word.starts_with("vramscope_")).collect()
}

#[test]
fn the_alerting_rules_name_metrics_that_exist() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = alternating(84);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    // A refused collector, so that its counter has a line.
    let mut refused = Peer::collector(server.address)?;
    let hello = wire::Hello { protocol: 99, ..stream.hello.clone() };
    refused.say(&wire::Message::Hello(hello))?;
    refused.refused()?;
    let text = metrics(&server)?;
    let known: BTreeSet<&str> =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(['{', ' ']).next()).collect();
    let rules = std::fs::read_to_string(workspace("collector/alerts.yml"))?;
    let named = names(&rules);
    ensure!(named.len() > 10, "the rules name {named:?}");
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "the rules name unknown metrics: {unknown:?}");
    Ok(())
}

/// Prometheus clients keep gauges as signed integers, and a collector may claim any number of lost events.
#[test]
fn no_gauge_wraps_whatever_collectors_claim() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let mut peers = Vec::new();
    for seed in 86..89 {
        let stream = Stream::new(seed, 1, 50);
        let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
        peer.batch(1, stream.batch(1))?;
        let lost = LostEvents { device: 0, from: 50, to: u64::MAX, by_action: [u64::MAX; Action::ALL.len()] };
        let (mut unused, mut chunk) = (Vec::new(), Vec::new());
        Writer::new(&Header::default(), &mut unused).lost_events(&lost, &mut chunk);
        peer.batch(2, &chunk)?;
        peer.acked(2)?;
        peers.push(peer);
    }
    let text = metrics(&server)?;
    let gauges: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_suffix(" gauge")?.strip_prefix("# TYPE ")).collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        if gauges.contains(name.split('{').next().unwrap_or_default()) && !value.contains('.') {
            let value: i64 = value.parse().map_err(|error| anyhow::anyhow!("{line}: {error}"))?;
            ensure!(value >= 0, "{line}");
        }
    }
    let most = format!("{{action=\"alloc\"}} {}", i64::MAX);
    ensure!(text.contains(&format!("vramscope_events_lost{most}")), "{text}");
    Ok(())
}
