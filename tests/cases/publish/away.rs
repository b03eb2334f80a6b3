//! A server that is away or slow: what is kept for it, where, and how much.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use format::recording::Decoder;
use recorder::WhenFull;
use tests::Folder;
use trace::event::Action;
use trace::limits::{ImportLimits, PublishLimits};

use crate::scripted::{Act, Scripted, Serve};
use crate::session::{LONG, Session, check, entry, limits};

#[test]
fn while_the_server_is_away_events_are_kept_in_memory_and_then_on_disk() -> Result<()> {
    let folder = Folder::new("away")?;
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
    // The files have no names, and vanish with the process.
    assert_eq!(fs::read_dir(file.with_extension("spool"))?.count(), 0);
    let server = Scripted::start_at(address, store)?;
    session.record(1_000);
    let (recorded, published) = session.finish(LONG);
    assert_eq!((recorded.events, recorded.lost, published.undelivered()), (52_000, 0, 0));
    assert_eq!((published.spool_bytes, published.memory_bytes), (0, 0));
    check(&server, &file, 52_000)?;
    assert!(server.store.lock().unwrap().batches.len() > stored + 5);
    Ok(())
}

#[test]
fn a_receipt_waits_for_a_connection_and_makes_one_attempt_to_reach_a_server_that_is_away() -> Result<()> {
    let folder = Folder::new("receipt")?;
    let file = folder.join("beside.vramscope");
    // After a first failure, a session alone would wait for an hour.
    let slow = PublishLimits { backoff_millis: 3_600_000, backoff_cap_millis: 3_600_000, ..limits() };
    let server = Scripted::start([])?;
    let mut session = Session::start(&server.url(), &file, slow, WhenFull::Wait)?;
    session.record(10);
    assert!(session.recorder.flush(LONG));
    let begun = Instant::now();
    assert!(session.publisher.receipt().wait(LONG), "the first connection is not waited for");
    assert_eq!(session.publisher.stats().events_acked, 10);

    let (address, store) = server.go_away();
    session.record(10);
    assert!(session.recorder.flush(LONG));
    session.until("the loss of the connection", |stats| stats.trouble.is_some());
    assert!(!session.publisher.receipt().wait(LONG), "nobody has stored it");
    assert!(!session.publisher.receipt().wait(LONG));
    let server = Scripted::start_at(address, store)?;
    assert!(session.publisher.receipt().wait(LONG), "the server is back");
    assert!(begun.elapsed() < LONG, "an attempt that fails ends the wait");
    let (_, published) = session.finish(LONG);
    assert_eq!(published.undelivered(), 0);
    check(&server, &file, 20)
}

#[test]
fn when_the_disk_is_full_too_lost_events_are_counted_and_recorded() -> Result<()> {
    for has_disk in [true, false] {
        let folder = Folder::new("full")?;
        let file = folder.join("beside.vramscope");
        let limits = PublishLimits { memory_bytes: 20_000, spool_bytes: 50_000, spool_file_bytes: 10_000, ..limits() };
        let server = Scripted::start([])?;
        if !has_disk {
            // A file in place of the folder.
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
        assert!(start.elapsed() < Duration::from_secs(10), "the job waited");
        let full = if has_disk { 70_000 } else { 20_000 };
        session.until("no room", |stats| stats.memory_bytes + stats.spool_bytes >= full);
        // The recorder's thread needs time to refuse the remaining events.
        std::thread::sleep(Duration::from_secs(1));
        let away = session.publisher.stats();
        assert!(away.spool_bytes + away.memory_bytes < 90_000, "{away:?}");
        assert_eq!(away.spool_failure.is_some(), !has_disk, "{away:?}");
        let server = Scripted::start_at(address, store)?;
        let before = server.store.lock().unwrap().batches.len();
        // Without a disk, only a few batches were kept.
        let kept = if has_disk { 5 } else { 1 };
        server.until("the rest", |store| store.batches.len() > before + kept);
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
        let missing = &track.lost;
        assert_eq!(missing.iter().map(|m| m.lost.to - m.lost.from).sum::<u64>(), recorded.lost);
        // One loss covers many events.
        assert!(!missing.is_empty() && missing.len() < 20, "{} gaps", missing.len());
        for m in missing {
            let mut want = [0; Action::ALL.len()];
            (m.lost.from..m.lost.to).for_each(|i| want[entry(i).action as usize] += 1);
            assert_eq!(m.lost.by_action, want);
        }
        let lost_before = |position: usize| -> u64 {
            missing.iter().filter(|m| m.position as usize <= position).map(|m| m.lost.to - m.lost.from).sum()
        };
        for (position, event) in track.trace.events.iter().enumerate() {
            let want = entry(position as u64 + lost_before(position));
            assert_eq!((event.action, event.address.0), (want.action, want.address), "event {position}");
        }
        assert_eq!(track.trace.events.len() as u64 + recorded.lost, total);
    }
    Ok(())
}

#[test]
fn when_full_wait_waits_for_a_slow_server() -> Result<()> {
    let folder = Folder::new("slow")?;
    let file = folder.join("beside.vramscope");
    let limits = PublishLimits { memory_bytes: 5_000, spool_bytes: 0, ..limits() };
    let server = Scripted::start([Act::Serve(Serve { delay: Duration::from_millis(5), ..Serve::default() })])?;
    let mut session = Session::start(&server.url(), &file, limits, WhenFull::Wait)?;
    // Far more than all queues together can hold.
    session.record(200_000);
    let (recorded, published) = session.finish(LONG);
    assert_eq!((recorded.events, recorded.lost, published.undelivered()), (200_000, 0, 0));
    check(&server, &file, 200_000)?;
    Ok(())
}

#[test]
fn an_unreachable_server_costs_only_the_time_given_to_the_end() -> Result<()> {
    let folder = Folder::new("never")?;
    let file = folder.join("beside.vramscope");
    // Nothing listens there any more.
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

    // The same holds for a server that hangs, and for a dropped handle.
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
    Ok(())
}
