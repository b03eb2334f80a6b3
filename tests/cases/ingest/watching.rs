//! Viewers: late ones and slow ones, and that none delays another.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use format::recording::Decoder;
use format::{Kind, prelude};
use tests::http;
use tests::peer::{Peer, Received, sent_us};
use tests::stream::Stream;
use trace::limits::ImportLimits;
use vramscope::ingest::Retention;
use wire::{Code, Message, SessionState};

use crate::check_same;
use crate::inside::{Inside, small};

/// A session that is stored completely.
fn sent(server: &Inside, stream: &Stream) -> Result<Peer> {
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    for seq in 1..=stream.last() {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(stream.last())?;
    Ok(peer)
}

#[test]
fn a_late_viewer_gets_the_state_the_last_part_and_then_new_batches() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(20, 200, 500);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    let most = stream.last() - 1;
    for seq in 1..=most {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(most)?;
    let mut viewer = Peer::viewer(server.address, stream.session(), 0)?;
    let (batches, gaps) = viewer.batches(most)?;
    let first = batches[0].0;
    ensure!(first > 10, "{first}: the session is longer than what is sent");
    assert_eq!(gaps, [(1, first)]);
    let seqs: Vec<u64> = batches.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, (first..=most).collect::<Vec<_>>());
    let bytes: usize = batches.iter().map(|(_, chunks)| chunks.len()).sum();
    ensure!((100_000..160_000).contains(&bytes), "{bytes} bytes");

    // Decoded without earlier batches it leads to the same final state as the whole.
    peer.batch(stream.last(), stream.batch(stream.last()))?;
    let (rest, _) = viewer.batches(stream.last())?;
    let late: Vec<u8> = batches.iter().chain(&rest).flat_map(|(_, chunks)| chunks.clone()).collect();
    assert_eq!(state(&[&prelude()[..], &late].concat())?, state(&stream.file)?);
    Ok(())
}

/// Returns the blocks at a recording's end, each with the innermost function of its stack.
fn state(file: &[u8]) -> Result<BTreeMap<u64, (u64, u64, String)>> {
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(file)?;
    let (snapshot, findings, _) = decoder.finish()?;
    ensure!(findings.is_empty(), "{findings:?}");
    let mut blocks = BTreeMap::new();
    for segment in &snapshot.devices[0].segments {
        for block in segment.blocks.iter().filter(|block| block.requested > 0) {
            let frame = snapshot.symbols.stack(block.stack).first();
            let name = frame.map(|frame| snapshot.symbols.text(snapshot.symbols.frame(*frame).name).into_owned());
            blocks.insert(block.address.0, (block.size, block.requested, name.unwrap_or_default()));
        }
    }
    Ok(blocks)
}

#[test]
fn a_viewer_that_reconnects_continues_where_it_was() -> Result<()> {
    let limits = trace::limits::ServerLimits { behind_bytes: 4 << 20, ..small() };
    let server = Inside::start(limits, Retention::default())?;
    let stream = Stream::new(21, 200, 500);
    let _peer = sent(&server, &stream)?;
    for after in [1, 57, 199, 200] {
        let mut viewer = Peer::viewer(server.address, stream.session(), after)?;
        let status = viewer.status(|_| true)?;
        assert_eq!((status.last, status.state), (200, SessionState::Ended));
        if after == 200 {
            continue;
        }
        let (batches, gaps) = viewer.batches(200)?;
        let want: Vec<_> = (after + 1..=200).map(|seq| (seq, stream.batch(seq).to_vec())).collect();
        assert!(batches == want && gaps.is_empty(), "after {after}: {} batches, {gaps:?}", batches.len());
    }
    Ok(())
}

#[test]
fn late_viewers_learn_when_a_batch_was_sent() -> Result<()> {
    let limits = trace::limits::ServerLimits { behind_bytes: 4 << 20, history_bytes: 4 << 20, ..small() };
    let server = Inside::start(limits, Retention::default())?;
    let stream = Stream::new(27, 150, 500);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    let last = stream.last() - 1;
    for seq in 1..=last {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(last)?;
    let mut viewer = Peer::viewer(server.address, stream.session(), 0)?;
    let mut next = 1;
    while next <= stream.last() {
        if let Received::Batch { seq, sent_us: told, .. } = viewer.receive()? {
            assert_eq!((seq, told), (next, sent_us(next)));
            next += 1;
            if seq == last {
                // And one that is received live.
                peer.batch(next, stream.batch(next))?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_viewer_far_behind_skips_batches_and_gets_a_notice() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(26, 200, 500);
    let _peer = sent(&server, &stream)?;
    let mut viewer = Peer::viewer(server.address, stream.session(), 1)?;
    let (batches, gaps) = viewer.batches(200)?;
    assert_eq!(gaps, [(2, batches[0].0)]);
    ensure!(batches[0].0 > 100, "{}", batches[0].0);
    Ok(())
}

#[test]
fn a_late_viewer_gets_no_more_than_it_can_hold() -> Result<()> {
    let limits = trace::limits::ServerLimits { history_bytes: 1 << 30, behind_bytes: 1 << 30, ..small() };
    let server = Inside::start(limits, Retention::default())?;
    let stream = Stream::new(27, 200, 500);
    let _peer = sent(&server, &stream)?;
    // How many events it can hold, and the fewest and most of the 100,000 events that it gets.
    for (events, least, most) in
        [(0, 100_000, 100_000), (100_000, 100_000, 100_000), (99_999, 25_000, 60_000), (8_000, 2_000, 30_000)]
    {
        let mut viewer = Peer::viewer_of(server.address, stream.session(), events)?;
        let (batches, gaps) = viewer.batches(200)?;
        let first = batches[0].0;
        let got = (200 - first + 1) * 500;
        ensure!((least..=most).contains(&got), "{events}: {got}");
        let told: Vec<(u64, u64)> = if first > 1 { vec![(1, first)] } else { Vec::new() };
        assert_eq!(gaps, told, "{events}");
    }
    Ok(())
}

#[test]
fn a_log_segment_ends_after_so_many_events_however_few_bytes_they_take() -> Result<()> {
    let limits = trace::limits::ServerLimits { segment_bytes: 1 << 30, segment_events: 10_000, ..small() };
    let server = Inside::start(limits, Retention::default())?;
    let stream = Stream::new(28, 100, 500);
    let _peer = sent(&server, &stream)?;
    let mut viewer = Peer::viewer_of(server.address, stream.session(), 20_000)?;
    let (batches, gaps) = viewer.batches(100)?;
    let first = batches[0].0;
    assert_eq!(gaps, [(1, first)]);
    ensure!((70..=90).contains(&first), "5,000 events at least, and one segment more at most: from {first}");
    Ok(())
}

#[test]
fn a_viewer_that_stops_reading_slows_no_one_and_catches_up_from_the_store() -> Result<()> {
    // It reads nothing until all others are done, however slow the machine.
    let limits = trace::limits::ServerLimits {
        viewer_bytes: 1 << 20,
        idle_seconds: 600,
        ..trace::limits::ServerLimits::default()
    };
    let server = Inside::start(limits, Retention::default())?;
    // More than any socket buffers.
    let stream = Stream::new(22, 300, 16_384);
    ensure!(stream.file.len() > 24 << 20, "{} bytes", stream.file.len());
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    let mut slow = Peer::viewer(server.address, stream.session(), 0)?;
    slow.batches(1)?;
    let mut quick = Peer::viewer(server.address, stream.session(), 0)?;
    let (last, name) = (stream.last(), stream.session().to_owned());
    let reader = std::thread::spawn(move || quick.batches(last));
    for seq in 2..=last {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.end(last)?;
    let (batches, gaps) = reader.join().expect("the quick one")?;
    assert!(gaps.is_empty() && batches.len() as u64 == last, "{} of {last}", batches.len());
    // All others received everything while this one read nothing; now it reads.
    let (late, gaps) = slow.batches(last)?;
    let got: Vec<u8> = late.into_iter().flat_map(|(_, chunks)| chunks).collect();
    let want: Vec<u8> = (2..=last).flat_map(|seq| stream.batch(seq).to_vec()).collect();
    assert!(gaps.is_empty(), "{gaps:?}");
    check_same("what the slow one got", &got, &want);
    let metrics = http::get(server.address, "/metrics", &[])?.text();
    let lags = metrics.lines().find_map(|line| line.strip_prefix("vramscope_viewer_lags_total ")).unwrap_or("0");
    assert_ne!(lags, "0", "it was never behind");
    assert!(metrics.contains("vramscope_viewer_skips_total 0"), "{name}");
    Ok(())
}

#[test]
fn a_session_whose_collector_disconnects_is_lost_and_can_be_resumed() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(23, 3, 100);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    let mut viewer = Peer::viewer(server.address, stream.session(), 0)?;
    viewer.status(|status| status.state == SessionState::Live)?;
    drop(peer);
    let begun = Instant::now();
    viewer.status(|status| status.state == SessionState::Lost)?;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let (mut peer, next) = Peer::hello(server.address, &stream.hello)?;
    assert_eq!(next, 2);
    viewer.status(|status| status.state == SessionState::Live)?;
    peer.batch(2, stream.batch(2))?;
    assert_eq!(viewer.batches(2)?.0.last().map(|batch| batch.0), Some(2));
    Ok(())
}

#[test]
fn a_question_of_a_viewer_reaches_the_job() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(24, 3, 100);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    let ask = |body: &str| -> Result<u16> {
        let request = format!(
            "POST /api/v1/sessions/{}/ask HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            stream.session(),
            server.address,
            body.len()
        );
        Ok(http::send(server.address, &request)?.status)
    };
    assert_eq!((ask(r#"{"what":"history"}"#)?, ask(r#"{"what":"money"}"#)?, ask("nonsense")?), (202, 400, 400));
    assert!(matches!(peer.frame()?, Message::Ask(ask) if ask.what == "history"));
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    drop(peer);
    let mut viewer = Peer::viewer(server.address, stream.session(), 0)?;
    viewer.status(|status| status.state == SessionState::Lost)?;
    assert_eq!(ask(r#"{"what":"state"}"#)?, 409);
    Ok(())
}

#[test]
fn a_watch_with_another_or_no_protocol_is_refused() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(25, 2, 100);
    let _peer = sent(&server, &stream)?;
    let path = format!("/api/v1/sessions/{}/live", stream.session());
    let cases = [
        (Some(Message::Watch(wire::Watch { protocol: 99, ..Default::default() })), Code::Protocol),
        (Some(Message::Goodbye(wire::Goodbye { seq: 1 })), Code::Malformed),
        (None, Code::Malformed),
    ];
    for (frame, code) in cases {
        let mut viewer = Peer::connect(server.address, &path, &[])?.expect("a socket");
        if let Some(frame) = frame {
            viewer.say(&frame)?;
        }
        assert_eq!(viewer.refused()?, (code, false));
    }
    assert_eq!(Peer::connect(server.address, &path.replace("live", "nothing"), &[])?.err(), Some(404));
    // Batch marks of the store are not sent.
    let mut viewer = Peer::viewer(server.address, stream.session(), 0)?;
    let chunks = viewer.batches(2)?.0.remove(0).1;
    assert!(!chunks.windows(5).any(|bytes| bytes == [0xc7, b'V', b'R', b'C', Kind::Batch as u8]));
    Ok(())
}
