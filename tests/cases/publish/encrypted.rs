//! The publisher over TLS: the same holds as without, and it sends nothing to a server that it can't verify.

use std::time::Duration;

use anyhow::{Context, Result};
use recorder::WhenFull;
use recorder::publish::{Cause, Destination, PublisherStats};
use tests::proxy::{Network, Proxy};
use tests::tls::{Authority, Middlebox, Pair, Sockets};
use tests::{Folder, tls};
use wire::Code;

use crate::scripted::{Act, Scripted, Serve};
use crate::session::{LONG, Session, check, limits, run_session};

/// Runs a session against a script, over TLS. Returns its statistics and the number of POST requests.
fn run_encrypted(name: &str, script: Vec<Act>, sockets: Sockets) -> Result<(PublisherStats, usize)> {
    let folder = Folder::new(name)?;
    let file = folder.join("beside.vramscope");
    let server = Scripted::start(script)?;
    let authority = Authority::new()?;
    let middlebox = Middlebox::start(&authority.issue()?, server.address(), None, sockets)?;
    let destination = Destination::parse(&format!("https://{}", middlebox.address()))?;
    let destination = destination.ca_file(Some(authority.write(&folder)?));
    run_session(Session::start_to(destination, &file, limits(), WhenFull::Wait)?, &server, &file)
}

#[test]
fn over_tls_everything_arrives_whatever_happens_to_connections() -> Result<()> {
    let serve = Serve::default();
    let late = Serve { delay: Duration::from_millis(30), ack_every: 3, ..serve.clone() };
    let cases: Vec<(&str, Vec<Act>, u64)> = vec![
        ("tls-well", vec![], 1),
        ("tls-late", vec![Act::Serve(late)], 1),
        ("tls-drops", vec![Act::Drop; 5], 1),
        ("tls-cut", (1..8).map(|i| Act::Serve(Serve { cut_after: Some(i * 777), ..serve.clone() })).collect(), 2),
        ("tls-closes", (0..6).map(|i| Act::Serve(Serve { close_after: Some(i), ..serve.clone() })).collect(), 6),
        ("tls-torn", vec![Act::Serve(Serve { torn_answer: true, ..serve.clone() }); 3], 1),
        ("tls-hangs", vec![Act::Hang, Act::Serve(Serve { hang_after: Some(2), ..serve.clone() })], 2),
        ("tls-busy", vec![Act::Refuse(Code::Busy, true)], 1),
    ];
    for (name, script, connections) in cases {
        let (stats, posts) = run_encrypted(name, script, Sockets::Pass).context(name)?;
        assert!(stats.connections >= connections && posts == 0, "{name}: {stats:?}");
    }
    Ok(())
}

#[test]
fn over_tls_requests_are_used_where_websockets_are_blocked() -> Result<()> {
    let script = vec![
        Act::Drop,
        Act::Status(503),
        Act::Serve(Serve { cut_after: Some(900), ..Serve::default() }),
        Act::Hang,
        Act::Refuse(Code::Busy, true),
    ];
    for (name, script) in [("tls-post", vec![]), ("tls-post-faults", script)] {
        let (stats, posts) = run_encrypted(name, script, Sockets::Block).context(name)?;
        assert!(stats.is_post && posts > 1, "{name}: {stats:?}");
    }
    Ok(())
}

#[test]
fn over_tls_a_network_that_is_silent_or_cut_costs_nothing() -> Result<()> {
    let folder = Folder::new("tls-network")?;
    let file = folder.join("beside.vramscope");
    let server = Scripted::start([])?;
    let authority = Authority::new()?;
    let middlebox = Middlebox::start(&authority.issue()?, server.address(), None, Sockets::Pass)?;
    let network = Proxy::to(middlebox.address())?;
    let destination = Destination::parse(&format!("https://{}", network.address()))?;
    let destination = destination.ca_file(Some(authority.write(&folder)?));
    let mut session = Session::start_to(destination, &file, limits(), WhenFull::Wait)?;
    for state in [Network::Closed, Network::Silent, Network::Closed, Network::Silent] {
        session.record(2_000);
        session.until("everything", |stats| stats.is_connected && stats.undelivered() == 0);
        let before = session.publisher.stats().connections;
        network.set(state);
        session.record(2_000);
        session.until("a lost connection", |stats| !stats.is_connected || stats.connections > before);
        network.set(Network::Up);
    }
    let (_, published) = session.finish(LONG);
    assert!(published.is_ended, "{published:?}");
    check(&server, &file, 16_000)
}

#[test]
fn a_server_that_cannot_be_verified_gets_nothing_and_the_error_says_why() -> Result<()> {
    let folder = Folder::new("tls-errors")?;
    let (authority, stranger) = (Authority::new()?, Authority::new()?);
    let trusted = authority.write(&folder)?;
    let own = Pair::self_signed(&["box.example"])?;
    let own_files = own.write(&folder)?;
    // The server's certificate; the file that the collector trusts; words of the error.
    let cases = [
        (authority.issue_for(&[tls::NAME], 2021)?, &trusted, ["has expired", "clock"]),
        (stranger.issue()?, &trusted, ["not issued by an authority in", "--ca-file"]),
        (Pair::self_signed(&[tls::NAME])?, &trusted, ["not issued by an authority in", "VRAMSCOPE_CA_FILE"]),
        (
            authority.issue_for(&["box.example", "10.1.2.3"], 2100)?,
            &trusted,
            ["is for box.example, ", "not for localhost"],
        ),
        // Named as trusted, but for another host.
        (own, &own_files.certificate, ["is for box.example", "not for localhost"]),
    ];
    for (pair, trusted, words) in cases {
        let server = Scripted::start([])?;
        let middlebox = Middlebox::start(&pair, server.address(), None, Sockets::Pass)?;
        let destination = Destination::parse(&format!("https://localhost:{}", middlebox.address().port()))?;
        let destination = destination.ca_file(Some(trusted.clone()));
        let file = folder.join("beside.vramscope");
        let mut session = Session::start_to(destination, &file, limits(), WhenFull::Count)?;
        session.record(100);
        let stats = session.until("an error", |stats| stats.trouble.is_some());
        assert_eq!(stats.cause, Cause::Certificate, "{stats:?}");
        let trouble = stats.trouble.unwrap_or_default();
        for word in words {
            assert!(trouble.contains(word), "{word:?} is not in {trouble:?}");
        }
        assert!(trouble.starts_with("https://localhost:") && !trouble.contains('\n'), "{trouble}");
        session.finish(Duration::from_millis(10));
        assert_eq!(server.store.lock().unwrap().connections, 0, "{trouble}");
    }
    Ok(())
}

#[test]
fn a_certificate_that_signed_itself_is_trusted_once_it_is_named() -> Result<()> {
    let folder = Folder::new("tls-own")?;
    let pair = Pair::self_signed(&[tls::NAME])?;
    let files = pair.write(&folder)?;
    let server = Scripted::start([])?;
    let middlebox = Middlebox::start(&pair, server.address(), None, Sockets::Pass)?;
    let destination = Destination::parse(&format!("https://localhost:{}", middlebox.address().port()))?;
    let destination = destination.ca_file(Some(files.certificate));
    let file = folder.join("beside.vramscope");
    run_session(Session::start_to(destination, &file, limits(), WhenFull::Wait)?, &server, &file)?;
    Ok(())
}

#[test]
fn a_handshake_that_does_not_end_is_given_up() -> Result<()> {
    let folder = Folder::new("tls-silent")?;
    // Each attempt hangs, so that the reason stays the same however late it is looked at.
    let server = Scripted::start(vec![Act::Hang; 50])?;
    let destination = Destination::parse(&format!("https://{}", server.address()))?;
    let destination = destination.ca_file(Some(Authority::new()?.write(&folder)?));
    let file = folder.join("beside.vramscope");
    let session = Session::start_to(destination, &file, limits(), WhenFull::Count)?;
    let stats = session.until("an error", |stats| stats.trouble.is_some());
    assert!(stats.trouble.as_deref().unwrap_or_default().contains("handshake took too long"), "{:?}", stats.trouble);
    session.finish(Duration::from_millis(10));
    Ok(())
}
