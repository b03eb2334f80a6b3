//! Those who are not let in: guesses of tokens, and other users of the machine; new tokens, and the log of who did what.
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::Stream;
use tests::{Folder, program};
use wire::{Code, Message};

use super::access::{Guarded, ROLES, ask, one_each, token};

/// Tries different tokens over one connection for a while, as fast as the server answers. Returns how many were compared
/// (401), and how many were not (429).
fn guess(server: SocketAddr, time: Duration) -> Result<(usize, usize)> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    let (mut compared, mut slowed) = (0, 0);
    let begun = Instant::now();
    let mut buffer = vec![0; 64 << 10];
    while begun.elapsed() < time {
        let request = format!(
            "GET /api/v1/sessions HTTP/1.1\r\nHost: {server}\r\nAuthorization: Bearer guess-number-{}\r\n\r\n",
            compared + slowed
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        // The body is one line of JSON.
        while !answer.ends_with("\"}}") {
            let read = stream.read(&mut buffer)?;
            ensure!(read > 0, "the connection ended after {answer:?}");
            answer += std::str::from_utf8(&buffer[..read])?;
        }
        match answer.split(' ').nth(1) {
            Some("401") => compared += 1,
            Some("429") => {
                ensure!(answer.contains("retry-after: ") && answer.contains("\"rate\""), "{answer}");
                slowed += 1;
            }
            _ => anyhow::bail!("{answer}"),
        }
    }
    Ok((compared, slowed))
}

#[test]
fn guesses_are_slowed_by_address_and_honest_clients_are_not() -> Result<()> {
    let folder = Folder::new("guesses")?;
    let file = folder.secret("tokens", &one_each())?;
    let data = folder.join("data");
    // On every address, so that two of the machine's own can be told apart.
    let server = Server::run(&data, &["--listen", "[::]:0", "--tokens", &file])?;
    let here = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), server.address().port());
    let list = |address: SocketAddr, token: &str| {
        Ok::<_, anyhow::Error>(ask(address, "GET", "/api/v1/sessions", token)?.status)
    };
    assert_eq!(list(here, &token("read"))?, 200);
    // A job with an outdated token tries it again and again.
    for _ in 0..200 {
        assert_eq!(list(here, "token-of-last-year")?, 401);
    }
    let (compared, slowed) = guess(here, Duration::from_secs(2))?;
    println!("{compared} guesses in 2 s were compared, {slowed} were not");
    // 50 at once, then 5 a second.
    assert!((40..=61).contains(&compared) && slowed > compared, "{compared} compared, {slowed} slowed");
    // Who was let in before still is.
    assert_eq!(list(here, &token("read"))?, 200);
    // So is everybody at another address.
    let other = SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), here.port());
    assert_eq!(list(other, &token("admin"))?, 200);
    // A collector that connects now is asked to try again later.
    let mut stream = Stream::new(88, 1, 10);
    stream.hello.token = "another-wrong-token".to_owned();
    while let Message::Refused(refused) = {
        let mut peer = Peer::collector(here)?;
        peer.say(&Message::Hello(stream.hello.clone()))?;
        peer.frame()?
    } {
        if refused.code == Code::Busy {
            assert!(refused.retry && refused.message.contains("too many wrong tokens"), "{}", refused.message);
            return Ok(());
        }
        // One more was regained meanwhile.
        stream.hello.token.push('x');
    }
    anyhow::bail!("a wrong token was welcome")
}

/// Runs a script of bash as a user who is nobody in particular. Returns its output; `None` if that is not possible here.
fn as_nobody(script: &str) -> Result<Option<String>> {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "bash", "-c", script]);
    match command.output() {
        Ok(output) if output.status.success() => Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned())),
        other => {
            println!("skipped: no client can be run as another user: {other:?}");
            Ok(None)
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_token_only_the_user_who_started_the_server_is_let_in() -> Result<()> {
    let server = Server::start()?;
    let stream = Stream::new(89, 1, 50);
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.end(1)?;
    let path = format!("/api/v1/sessions/{}", stream.session());
    let (address, port) = (server.address(), server.address().port());
    let request = |method: &str, path: &str| {
        format!(
            "{method} {path} HTTP/1.1\\r\\nHost: {address}\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n"
        )
    };
    let script = |method: &str, path: &str| {
        format!("exec 3<>/dev/tcp/127.0.0.1/{port} && printf '{}' >&3 && cat <&3", request(method, path))
    };
    for (method, path, wanted) in [
        ("GET", "/api/v1/sessions", "HTTP/1.1 403 "),
        ("GET", "/metrics", "HTTP/1.1 403 "),
        ("DELETE", &*path, "HTTP/1.1 403 "),
        ("POST", "/api/v1/demo", "HTTP/1.1 403 "),
        ("GET", "/healthz", "HTTP/1.1 200 "),
    ] {
        let Some(answer) = as_nobody(&script(method, path))? else { return Ok(()) };
        assert!(answer.starts_with(wanted), "{method} {path}: {answer}");
        if wanted.contains("403") {
            assert!(answer.contains("\"user\"") && answer.contains("--token-file"), "{answer}");
        }
    }
    let server = Server::start_with(&["--allow-other-users"])?;
    let port = server.address().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && printf '{}' >&3 && cat <&3", request("GET", "/metrics"));
    let answer = as_nobody(&script)?.context("a client ran before")?;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    Ok(())
}

#[test]
fn a_new_token_is_shown_once_and_its_line_lets_it_in() -> Result<()> {
    let command = ["token", "new", "--name", "people", "--role", "read", "--role", "share", "--bytes", "20GiB"];
    let output = program::run(&command)?;
    assert_eq!(output.status.code(), Some(0));
    let (line, told) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    let token = told.trim_end().rsplit(' ').next().context("no token")?;
    assert_eq!(token.len(), 64, "{told}");
    assert!(line.starts_with("people read,share sha256:") && line.ends_with(" bytes=20GiB\n"), "{line}");
    assert!(!line.contains(token) && program::run(&command)?.stdout != line.as_bytes());
    let guarded = Guarded::start(&line)?;
    assert_eq!(guarded.ask("GET", "/api/v1/sessions", token)?.status, 200);

    for (arguments, wanted) in [
        (vec!["--name", "a b", "--role", "read"], "--name \"a b\" must have 1 to 64 characters"),
        (vec!["--name", "", "--role", "read"], "--name \"\" must have 1 to 64 characters"),
        (vec!["--name", "a", "--role", "viewer"], "--role \"viewer\" is not a role. Use ingest, read, share or admin."),
        (vec!["--name", "a", "--role", "read", "--expires", "soon"], "--expires \"soon\" is not a date"),
        (vec!["--name", "a", "--role", "read", "--expires", "2020-01-01"], "--expires 2020-01-01 is in the past"),
        (vec!["--name", "a", "--role", "read", "--bytes", "1"], "--bytes \"1\" is not a size with its unit"),
    ] {
        let output = program::run(&[&["token", "new"], &arguments[..]].concat())?;
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), line.lines().count(), output.stdout.len()), (Some(2), 1, 0), "{line}");
        assert!(line.contains(wanted), "{line}");
    }
    Ok(())
}

#[test]
fn the_audit_log_has_a_line_for_each_deed_and_each_denial() -> Result<()> {
    let folder = Folder::new("audit")?;
    let file = folder.secret("tokens", &one_each())?;
    let server = Server::start_logging(&folder, &["--tokens", &file, "--log-format", "json"], &[])?;
    let address = server.address();
    let mut stream = Stream::new(90, 2, 20);
    let path = format!("/api/v1/sessions/{}", stream.session());
    stream.hello.token = token("ingest");
    for part in 1..=2 {
        let (mut peer, _) = Peer::hello(address, &stream.hello)?;
        peer.batch(part, stream.batch(part))?;
        peer.acked(part)?;
        if part == 2 {
            peer.end(2)?;
            // An ended session takes no more.
            peer.batch(3, stream.batch(1))?;
            assert_eq!(peer.refused()?.0, Code::Ended);
        }
        peer.close();
    }
    let mut viewer = Peer::viewer_with(address, stream.session(), "a-token-that-nobody-has")?;
    viewer.refused()?;
    let mut viewer = Peer::viewer_with(address, stream.session(), &token("share"))?;
    viewer.refused()?;
    assert_eq!(ask(address, "GET", "/api/v1/sessions", "the-guess-of-somebody")?.status, 401);
    assert_eq!(ask(address, "DELETE", &path, &token("read"))?.status, 403);
    assert_eq!(server.get(&path)?.status, 401);
    assert_eq!(ask(address, "DELETE", &path, &token("admin"))?.status, 204);
    let log = server.log(&folder)?;

    let mut lines = Vec::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line)?;
        if event["target"] != "audit" {
            continue;
        }
        assert_eq!(event["peer"], "127.0.0.1", "{line}");
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let is_ours = text("session") == stream.session();
        assert!(is_ours || text("session").is_empty(), "{line}");
        let what = if is_ours { "session".to_owned() } else { text("method") + &text("route") };
        lines.push([text("level"), text("message"), text("who"), what, text("outcome")].join("|"));
    }
    assert_eq!(
        lines,
        [
            "INFO|session begun|ingest|session|",
            "INFO|session resumed|ingest|session|",
            "INFO|session ended|ingest|session|",
            "WARN|refused|ingest|session|ended",
            "WARN|login failed|||wrong token",
            "WARN|refused|share|session|role",
            "WARN|login failed|||wrong token",
            "WARN|refused|read|DELETE/api/v1/sessions/{id}|role",
            "WARN|refused||GET/api/v1/sessions/{id}|no token",
            "INFO|session deleted|admin|session|",
        ]
    );
    for secret in
        ROLES.map(token).iter().map(String::as_str).chain(["nobody-has", "guess-of", stream.hello.key.as_str()])
    {
        assert!(!log.contains(secret), "{secret} is in the log: {log}");
    }
    Ok(())
}
