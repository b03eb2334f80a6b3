use anyhow::Result;
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::Stream;
use wire::{Code, Message, SessionState};

use crate::{check_same, download, json};

#[test]
fn a_session_is_received_watched_and_downloaded_as_it_was_sent() -> Result<()> {
    let server = Server::start()?;
    let stream = Stream::new(1, 5, 300);
    let (mut collector, next) = Peer::hello(server.address(), &stream.hello)?;
    assert_eq!(next, 1);
    for seq in 1..=3 {
        collector.batch(seq, stream.batch(seq))?;
    }
    collector.acked(3)?;

    let mut viewer = Peer::viewer(server.address(), stream.session(), 0)?;
    let (batches, gaps) = viewer.batches(3)?;
    let sent = |from: u64| (from..=3).map(|seq| (seq, stream.batch(seq).to_vec())).collect::<Vec<_>>();
    assert_eq!((batches, gaps), (sent(1), vec![]));
    let session = json(&server, &format!("/api/v1/sessions/{}", stream.session()))?;
    assert_eq!((&session["state"], &session["events"], &session["viewers"]), (&"live".into(), &900.into(), &1.into()));

    for seq in 4..=stream.last() {
        collector.batch(seq, stream.batch(seq))?;
    }
    collector.end(stream.last())?;
    assert_eq!(viewer.batches(5)?.0.len(), 2);
    let status = viewer.status(|status| status.state == SessionState::Ended)?;
    assert_eq!((status.last, status.events, status.lost_events), (5, stream.events, 0));

    check_same("the download", &download(&server, stream.session())?, &stream.file);
    let session = json(&server, &format!("/api/v1/sessions/{}", stream.session()))?;
    assert_eq!((&session["state"], &session["name"]), (&"ended".into(), &"session 1".into()));
    assert!(session["devices"][0]["reserved"] == 64_u64 << 30, "{session}");
    Ok(())
}

#[test]
fn a_batch_that_is_sent_twice_is_stored_once() -> Result<()> {
    let server = Server::start()?;
    let stream = Stream::new(2, 4, 100);
    let (mut collector, _) = Peer::hello(server.address(), &stream.hello)?;
    for seq in [1, 2, 1, 2, 2, 3, 1, 4] {
        collector.batch(seq, stream.batch(seq))?;
    }
    collector.end(4)?;
    check_same("the download", &download(&server, stream.session())?, &stream.file);
    // The last ack may be lost: a collector that reconnects learns that nothing more is expected, and may add nothing.
    let (mut again, next) = Peer::hello(server.address(), &stream.hello)?;
    assert_eq!(next, 5);
    again.end(4)?;
    again.batch(5, stream.batch(4))?;
    assert_eq!(again.refused()?, (Code::Ended, false));
    Ok(())
}

#[test]
fn a_missing_batch_is_refused_and_earlier_ones_are_kept() -> Result<()> {
    let server = Server::start()?;
    let stream = Stream::new(3, 4, 100);
    let (mut collector, _) = Peer::hello(server.address(), &stream.hello)?;
    collector.batch(1, stream.batch(1))?;
    collector.batch(3, stream.batch(3))?;
    assert_eq!(collector.refused()?, (Code::Order, true));
    let (mut collector, next) = Peer::hello(server.address(), &stream.hello)?;
    assert_eq!(next, 2);
    collector.goodbye(2)?;
    assert_eq!(collector.refused()?, (Code::Order, true));
    Ok(())
}

#[test]
fn a_newer_connection_takes_over_and_another_collectors_does_not() -> Result<()> {
    let server = Server::start()?;
    let stream = Stream::new(4, 4, 100);
    let (mut old, _) = Peer::hello(server.address(), &stream.hello)?;
    old.batch(1, stream.batch(1))?;
    old.acked(1)?;

    let stranger = wire::Hello { key: tests::stream::name(99), ..stream.hello.clone() };
    let mut peer = Peer::collector(server.address())?;
    peer.say(&Message::Hello(stranger))?;
    assert_eq!(peer.refused()?, (Code::Key, false));
    old.batch(2, stream.batch(2))?;
    old.acked(2)?;

    let (mut new, next) = Peer::hello(server.address(), &stream.hello)?;
    assert_eq!(next, 3);
    assert_eq!(old.refused()?, (Code::Busy, true));
    for seq in 3..=4 {
        new.batch(seq, stream.batch(seq))?;
    }
    new.end(4)?;
    check_same("the download", &download(&server, stream.session())?, &stream.file);
    Ok(())
}
