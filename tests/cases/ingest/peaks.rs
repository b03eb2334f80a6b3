//! The peaks in a session's statistics: exact after every event, wherever chunks, log segments and crashes divide it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::{Random, START_US, Stream};
use tests::{Folder, http, program};
use trace::event::Action;
use trace::units::Address;
use trace::{Event, TagId};
use vramscope::ingest::Retention;

use crate::inside::{Inside, small};
use crate::{check_same, download, json};

const BATCHES: usize = 40;
/// Events of a batch; the batch with the peak has those of the peak in addition.
const EVENTS: usize = 1_000;
/// Bytes that stay allocated once they are.
const LEVEL: u64 = 200 << 20;
/// Bytes allocated for a moment in addition, and bytes requested.
const SPIKE: u64 = 6 << 30;
const SPIKE_REQUESTED: u64 = SPIKE - 100;

/// Within one of its chunks everything is allocated and freed again.
fn spiky(seed: u64) -> Stream {
    const BASE: u64 = 0x7f00_0000_0000;
    const FAR: u64 = 0x7e00_0000_0000;
    let (mut time_us, mut random) = (START_US, Random::new(seed));
    Stream::of(seed, "spiky", BATCHES, |batch, stack| {
        let mut events = Vec::new();
        let mut push = |action, address, size| {
            time_us += 1 + random.below(100) as i64;
            events.push(Event { action, address: Address(address), size, time_us, tag: TagId(0), stack });
        };
        if batch == 0 {
            push(Action::SegmentAlloc, BASE, 1 << 30);
            push(Action::Alloc, BASE, LEVEL);
        }
        for i in 0..EVENTS / 2 {
            push(Action::FreeRequested, BASE, LEVEL);
            push(Action::FreeCompleted, BASE, LEVEL);
            if batch == BATCHES / 2 && i == EVENTS / 4 {
                push(Action::SegmentAlloc, FAR, 8 << 30);
                push(Action::Alloc, BASE, LEVEL);
                push(Action::Alloc, FAR, SPIKE_REQUESTED);
                push(Action::FreeRequested, FAR, SPIKE_REQUESTED);
                push(Action::FreeCompleted, FAR, SPIKE_REQUESTED);
                push(Action::SegmentFree, FAR, 8 << 30);
            } else {
                push(Action::Alloc, BASE, LEVEL);
            }
        }
        events
    })
}

/// Checks the reported peaks.
fn check(stats: &Value, peak_us: i64) -> Result<()> {
    let device = &stats["devices"][0];
    for (name, want) in [
        ("peak_allocated", LEVEL + SPIKE),
        ("peak_active", LEVEL + SPIKE),
        ("peak_reserved", 9 << 30),
        ("peak_requested", LEVEL + SPIKE_REQUESTED),
    ] {
        assert_eq!(device[name], want, "{name}");
    }
    assert_eq!((&device["peaks_are_exact"], &device["lost"]), (&true.into(), &0.into()));
    let points: Vec<Vec<i64>> = serde_json::from_value(device["points"].clone())?;
    ensure!((20..=240).contains(&points.len()), "{} points", points.len());
    let peak = points.iter().rposition(|point| point[0] <= peak_us).context("a point")?;
    for (i, point) in points.iter().enumerate() {
        let (used, reserved) = if i == peak { (LEVEL + SPIKE, 9 << 30) } else { (LEVEL, 1 << 30) };
        // The first batches may hold only the segment, or only the time between two allocations.
        let is_begun = i > 0 || point[1] > 0;
        assert!(!is_begun || point[1..] == [used as i64, used as i64, reserved], "point {i}: {point:?}");
    }
    Ok(())
}

#[test]
fn a_peak_within_a_chunk_is_exact_however_the_session_is_divided() -> Result<()> {
    let stream = spiky(70);
    let folder = Folder::new("peaks")?;
    let server = Server::start_in(&folder, &[])?;
    let half = stream.last() / 2 + 3;
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    for seq in 1..=half {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(half)?;
    // The totals are computed again from what is stored.
    server.kill()?;
    let server = Server::start_in(&folder, &[])?;
    let (mut peer, next) = Peer::hello(server.address(), &stream.hello)?;
    assert_eq!(next, half + 1);
    for seq in next..=stream.last() {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.end(stream.last())?;

    let file = folder.join("download.vramscope");
    std::fs::write(&file, download(&server, stream.session())?)?;
    let output = program::run(&["report", "--json", file.to_str().context("a path")?])?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let peak = &report["files"][0]["devices"][0]["peak"];
    let stats = json(&server, &format!("/api/v1/sessions/{}/stats", stream.session()))?;
    assert_eq!(stats["devices"][0]["peak_requested"], peak["requested_bytes"]);
    let peak_us = peak["time_us"].as_i64().context("a time")?;
    check(&stats, peak_us)?;

    // In many log segments, none of which ends at the peak.
    let limits = trace::limits::ServerLimits { segment_bytes: 10_000, ..small() };
    let server = Inside::start(limits, Retention::default())?;
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    for seq in 1..=stream.last() {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(stream.last())?;
    let found = server.sessions.get(stream.session()).context("the session")?.look(|view| view.segments.len());
    ensure!(found > 2, "{found} segments");
    let path = format!("/api/v1/sessions/{}/stats", stream.session());
    let parted: Value = serde_json::from_slice(&http::get(server.address, &path, &[])?.body)?;
    assert_eq!(parted["devices"], stats["devices"]);
    Ok(())
}

#[test]
fn peaks_after_lost_events_are_not_called_exact() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(71, 3, 100);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    let exact = || -> Result<Value> {
        let path = format!("/api/v1/sessions/{}/stats", stream.session());
        let stats: Value = serde_json::from_slice(&http::get(server.address, &path, &[])?.body)?;
        Ok(stats["devices"][0]["peaks_are_exact"].clone())
    };
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    assert_eq!(exact()?, Value::Bool(true));
    // The events of the second are left out, as by a recorder whose buffer overflowed.
    peer.batch(2, stream.batch(3))?;
    peer.acked(2)?;
    assert_eq!(exact()?, Value::Bool(false));
    Ok(())
}

#[test]
fn a_clock_that_is_set_back_breaks_neither_the_series_nor_the_trace() -> Result<()> {
    const HOUR_US: i64 = 3_600_000_000;
    let server = Inside::start(small(), Retention::default())?;
    let (mut time_us, mut is_held) = (START_US, false);
    let stream = Stream::of(72, "jumps", 30, |batch, stack| {
        if batch % 10 == 9 {
            time_us -= HOUR_US;
        }
        let mut events = Vec::new();
        let mut push = |action, address, size| {
            time_us += 1_000;
            events.push(Event { action, address: Address(address), size, time_us, tag: TagId(0), stack });
        };
        if !std::mem::replace(&mut is_held, true) {
            push(Action::SegmentAlloc, 1 << 40, 1 << 30);
        }
        for i in 0..500 {
            let size = (1 + i * (batch as u64 + 1)) << 10;
            push(Action::Alloc, 1 << 40, size);
            push(Action::FreeRequested, 1 << 40, size);
            push(Action::FreeCompleted, 1 << 40, size);
        }
        events
    });
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    for seq in 1..=stream.last() {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(stream.last())?;
    let path = format!("/api/v1/sessions/{}", stream.session());
    let get = |path: &str| http::get(server.address, path, &[]);
    let stats: Value = serde_json::from_slice(&get(&format!("{path}/stats"))?.body)?;
    let device = &stats["devices"][0];
    assert_eq!(
        (&device["peak_requested"], &device["peaks_are_exact"]),
        (&((1 + 499 * 30_u64) << 10).into(), &true.into())
    );
    let points: Vec<Vec<i64>> = serde_json::from_value(device["points"].clone())?;
    assert!(points.is_sorted_by(|a, b| a[0] < b[0]) && points.len() <= 240, "{points:?}");
    assert_eq!(points.iter().map(|point| point[1]).max(), device["peak_allocated"].as_i64());
    check_same("the download", &get(&format!("{path}/trace"))?.body, &stream.file);
    for query in [format!("?to_us={START_US}"), format!("?from_us={}", time_us - 5), "?from_us=0&to_us=1".to_owned()] {
        let part = get(&format!("{path}/trace{query}"))?;
        if part.status == 200 {
            let mut decoder = format::recording::Decoder::new(trace::limits::ImportLimits::default());
            decoder.push(&part.body)?;
            decoder.finish()?;
        } else {
            assert_eq!(part.status, 404, "{query}");
        }
    }
    Ok(())
}
