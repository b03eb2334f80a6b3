//! Who may do what: tokens with roles, quotas and an end, guesses, and other users of the machine.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::http::{self, Response};
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::Stream;
use tests::{Folder, program};
use trace::limits::WireLimits;
use wire::{Batch, Code, Decoder, Message};

/// The roles; each has a token of its name.
pub(super) const ROLES: [&str; 4] = ["ingest", "read", "share", "admin"];

pub(super) fn token(role: &str) -> String {
    format!("token-with-the-role-{role}")
}

/// A tokens file with one token for each role.
pub(super) fn one_each() -> String {
    ROLES.iter().map(|role| format!("{role} {role} {}\n", token(role))).collect()
}

/// A server with a tokens file.
pub(super) struct Guarded {
    server: Server,
    folder: Folder,
}

impl Guarded {
    pub(super) fn start(tokens: &str) -> Result<Self> {
        let folder = Folder::new("tokens")?;
        let file = folder.secret("tokens", tokens)?;
        Ok(Self { server: Server::start_with(&["--tokens", &file])?, folder })
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Sends a request with a token.
    pub(super) fn ask(&self, method: &str, path: &str, token: &str) -> Result<Response> {
        ask(self.address(), method, path, token)
    }

    /// Opens a collector's socket and sends its hello with a token.
    fn collector(&self, stream: &mut Stream, token: &str) -> Result<Peer> {
        stream.hello.token = token.to_owned();
        let mut peer = Peer::collector(self.address())?;
        peer.say(&Message::Hello(stream.hello.clone()))?;
        Ok(peer)
    }
}

pub(super) fn ask(server: SocketAddr, method: &str, path: &str, token: &str) -> Result<Response> {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {server}\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\nConnection: \
         close\r\n\r\n"
    );
    http::send(server, &request)
}

/// Returns the code and the message of an error.
pub(super) fn error(response: &Response) -> Result<(String, String)> {
    let json: Value = serde_json::from_slice(&response.body)?;
    let field = |name: &str| json["error"][name].as_str().map(str::to_owned).context("no error");
    Ok((field("code")?, field("message")?))
}

#[test]
fn the_start_line_tells_who_is_let_in() -> Result<()> {
    let folder = Folder::new("start")?;
    let single = folder.secret("single", "correct-horse-battery-staple\n")?;
    let tokens = folder.secret("tokens", &one_each())?;
    let alone = if cfg!(target_os = "linux") {
        "open to you, and to anyone who can reach a tunnel of yours"
    } else {
        "opened by a link with a token"
    };
    for (arguments, wanted) in [
        (vec![], alone),
        (vec!["--allow-other-users"], "open to every user of this machine"),
        (vec!["--token-file", &single], "with a token"),
        (vec!["--tokens", &tokens], "with 4 tokens"),
    ] {
        let server = Server::start_with(&arguments)?;
        assert_eq!(server.access(), wanted, "{arguments:?}");
    }
    Ok(())
}

#[test]
fn a_server_that_is_not_encrypted_warns_and_names_an_address_that_can_be_opened() -> Result<()> {
    let folder = Folder::new("plain")?;
    let tokens = folder.secret("tokens", &one_each())?;
    let data = folder.join("data").to_string_lossy().into_owned();
    let started = |arguments: &[&str]| -> Result<(String, String)> {
        let log = folder.join("log");
        let mut child = Command::new(program::path()?)
            .args(["serve", "--data", &data, "--tokens", &tokens, "--log", "warn"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let mut line = String::new();
        // The warning stands before the line.
        let read = BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line);
        child.kill()?;
        child.wait()?;
        read?;
        Ok((line, fs::read_to_string(&log)?))
    };
    for (arguments, wanted, has_warning) in [
        (vec!["--listen", "127.0.0.1:0", "--host", "box.example"], "http://127.0.0.1:", false),
        (vec!["--listen", "0.0.0.0:0"], "/ (Ctrl-C stops it), on all addresses of this machine, with 4 tokens", true),
        (vec!["--listen", "0.0.0.0:0", "--host", "box.example"], "http://box.example:", true),
        (vec!["--listen", "0.0.0.0:0", "--behind-proxy", "127.0.0.1"], "http://0.0.0.0:", false),
    ] {
        let (line, log) = started(&arguments)?;
        assert!(line.contains(wanted), "{arguments:?}: {line}");
        let warning =
            log.contains("Tokens and recordings travel unencrypted") && log.contains("--tls-cert and --tls-key");
        assert_eq!(warning, has_warning, "{arguments:?}: {log}");
    }
    Ok(())
}

#[test]
fn an_option_that_could_have_no_effect_is_refused_with_what_to_write() -> Result<()> {
    let folder = Folder::new("options")?;
    let missing = folder.join("missing").to_string_lossy().into_owned();
    let none = folder.join("none").to_string_lossy().into_owned();
    for (arguments, wanted) in [
        (vec!["--host", "http://foo"], vec!["--host", "without a port: foo"]),
        (vec!["--host", ""], vec!["--host", "write the name only"]),
        (vec!["--keep-bytes", "2"], vec!["--keep-bytes", "add a unit, such as 2GiB"]),
        (vec!["--keep-bytes", "2EiB"], vec!["--keep-bytes", "up to 1EiB"]),
        // It is large enough, so that the next option is looked at.
        (vec!["--keep-bytes", "2TiB", "--tokens", &missing], vec!["tokens file of --tokens", "vramscope token new"]),
        (vec!["--token-file", &missing], vec!["--token-file: ", "can't be read"]),
        (vec!["--behind-proxy", "127.0.0.1"], vec!["--token-file FILE, --tokens FILE or the variable VRAMSCOPE_TOKEN"]),
        (vec!["--listen", "0.0.0.0:0"], vec!["--token-file FILE, --tokens FILE or the variable VRAMSCOPE_TOKEN"]),
    ] {
        let output = program::run(&[&["serve", "--data", &none], &arguments[..]].concat())?;
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(wanted.iter().all(|wanted| error.contains(wanted)), "{arguments:?}: {error}");
    }
    Ok(())
}

#[test]
fn a_file_that_others_can_read_starts_no_server() -> Result<()> {
    let folder = Folder::new("open")?;
    let file = folder.secret("file", &one_each())?;
    for mode in [0o644, 0o640, 0o604] {
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        for option in ["--token-file", "--tokens"] {
            let output = program::run(&["serve", "--listen", "127.0.0.1:0", option, &file])?;
            let line = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{option} {mode:o}: {line}");
            assert!(line.contains(&format!("chmod 600 {file}")), "{option} {mode:o}: {line}");
        }
    }
    Ok(())
}

#[test]
fn each_role_may_do_its_own_and_admin_everything() -> Result<()> {
    let guarded = Guarded::start(&one_each())?;
    let mut stream = Stream::new(80, 1, 50);
    let mut peer = guarded.collector(&mut stream, &token("ingest"))?;
    ensure!(matches!(peer.frame()?, Message::Welcome(_)), "no welcome");
    peer.batch(1, stream.batch(1))?;
    peer.end(1)?;

    // Each route that needs a role, and the status for a token that has it.
    let table = [
        ("GET", "/api/v1/sessions", "read", 200),
        ("GET", "/api/v1/sessions/{id}", "read", 200),
        ("GET", "/api/v1/sessions/{id}/stats", "read", 200),
        ("GET", "/api/v1/sessions/{id}/trace", "read", 200),
        ("POST", "/api/v1/sessions/{id}/ask", "read", 400),
        ("PUT", "/api/v1/sessions/{id}/pin", "admin", 400),
        ("POST", "/api/v1/explain", "read", 200),
        ("POST", "/api/v1/demo", "ingest", 200),
        // Others use a server with tokens, who must not read its user's files.
        ("POST", "/api/v1/files", "admin", 403),
        ("GET", "/api/v1/files/{id}/{name}", "read", 404),
        ("GET", "/metrics", "read", 200),
        // The role is needed before a socket is opened.
        ("GET", "/api/v1/ingest", "ingest", 426),
        ("POST", "/api/v1/ingest", "ingest", 200),
        ("GET", "/api/v1/sessions/{id}/live", "read", 426),
        ("DELETE", "/api/v1/sessions/{id}", "admin", 204),
        ("POST", "/api/v1/traces", "share", 400),
        ("GET", "/api/v1/traces/sharing", "share", 200),
        ("POST", "/api/v1/traces/uploads", "share", 400),
        ("GET", "/api/v1/traces/uploads/{id}", "share", 404),
        ("PUT", "/api/v1/traces/uploads/{id}", "share", 400),
        ("DELETE", "/api/v1/traces/uploads/{id}", "share", 404),
        ("POST", "/api/v1/traces/uploads/{id}/finish", "share", 404),
        ("GET", "/api/v1/baselines", "share", 200),
        ("GET", "/api/v1/baselines/{name}", "share", 404),
        ("PUT", "/api/v1/baselines/{name}", "share", 400),
        ("DELETE", "/api/v1/baselines/{name}", "share", 404),
        // No link has this token.
        ("GET", "/api/v1/traces/{token}", "read", 404),
        ("GET", "/api/v1/traces/{token}/trace", "read", 404),
        ("GET", "/api/v1/traces/{token}/picture.png", "read", 404),
        ("POST", "/api/v1/traces/{token}/open", "read", 400),
        // The delete token is missing.
        ("PUT", "/api/v1/traces/{token}/expiry", "share", 403),
        ("DELETE", "/api/v1/traces/{token}", "admin", 404),
    ];
    for (method, path, needed, status) in table {
        let place = path.replace("{id}", stream.session()).replace("{token}", "x").replace("{name}", "x");
        // The demo is started by whoever comes first.
        let status = |response: &Response| if response.status == 201 { 200 } else { response.status } == status;
        for role in ROLES {
            let response = guarded.ask(method, &place, &token(role))?;
            if role == needed || role == "admin" {
                assert!(status(&response), "{role} {method} {path}: {} {}", response.status, response.text());
                continue;
            }
            let (code, message) = error(&response)?;
            assert_eq!((response.status, &*code), (403, "role"), "{role} {method} {path}");
            assert!(message.contains(&format!("the role {needed}")), "{role} {method} {path}: {message}");
        }
    }

    // A new route must be in the table.
    let api: Value = serde_json::from_slice(&guarded.server.get("/api/v1/openapi.json")?.body)?;
    let mut described = BTreeSet::new();
    for (path, methods) in api["paths"].as_object().context("no paths")? {
        for (method, operation) in methods.as_object().context("no methods")? {
            if operation["responses"].get("429").is_some() {
                described.insert((method.to_uppercase(), path.clone()));
            } else {
                let place = path.replace("{id}", "x").replace("{token}", "x");
                assert!(guarded.server.get(&place)?.status < 400, "{path} is neither described nor public");
            }
        }
    }
    let listed: BTreeSet<_> =
        table.iter().map(|(method, path, ..)| ((*method).to_owned(), (*path).to_owned())).collect();
    assert_eq!(described, listed);
    Ok(())
}

#[test]
fn a_socket_needs_the_role_in_its_first_message() -> Result<()> {
    let guarded = Guarded::start(&one_each())?;
    let mut stream = Stream::new(81, 1, 50);
    for role in ["read", "share"] {
        assert_eq!(guarded.collector(&mut stream, &token(role))?.refused()?, (Code::Token, false), "{role}");
    }
    let mut peer = guarded.collector(&mut stream, &token("admin"))?;
    assert!(matches!(peer.frame()?, Message::Welcome(_)));
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    for role in ["ingest", "share"] {
        let mut viewer = Peer::viewer_with(guarded.address(), stream.session(), &token(role))?;
        assert_eq!(viewer.refused()?, (Code::Token, false), "{role}");
    }
    for role in ["read", "admin"] {
        let mut viewer = Peer::viewer_with(guarded.address(), stream.session(), &token(role))?;
        assert_eq!(viewer.batches(1)?.0.len(), 1, "{role}");
    }
    Ok(())
}

#[test]
fn a_token_that_is_removed_ends_what_uses_it_and_nothing_else() -> Result<()> {
    let guarded = Guarded::start(&one_each())?;
    let (mut first, mut second) = (Stream::new(82, 2, 50), Stream::new(83, 2, 50));
    let mut revoked = guarded.collector(&mut first, &token("ingest"))?;
    let mut kept = guarded.collector(&mut second, &token("admin"))?;
    for (peer, stream) in [(&mut revoked, &first), (&mut kept, &second)] {
        assert!(matches!(peer.frame()?, Message::Welcome(_)));
        peer.batch(1, stream.batch(1))?;
        peer.acked(1)?;
    }
    let mut viewer = Peer::viewer_with(guarded.address(), first.session(), &token("read"))?;
    viewer.batches(1)?;
    let mut other = Peer::viewer_with(guarded.address(), second.session(), &token("admin"))?;
    other.batches(1)?;

    let begun = Instant::now();
    guarded.folder.secret("tokens", &format!("admin admin {}\nnew read {}x\n", token("admin"), token("read")))?;
    assert_eq!(revoked.refused()?, (Code::Token, false));
    assert_eq!(viewer.refused()?, (Code::Token, false));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    kept.batch(2, second.batch(2))?;
    kept.acked(2)?;
    assert_eq!(other.batches(2)?.0.len(), 1);
    assert_eq!(guarded.ask("GET", "/api/v1/sessions", &token("read"))?.status, 401);
    assert_eq!(guarded.ask("GET", "/api/v1/sessions", &format!("{}x", token("read")))?.status, 200);
    // What the revoked collector sent is kept.
    let session = guarded.ask("GET", &format!("/api/v1/sessions/{}", first.session()), &token("admin"))?;
    assert_eq!(serde_json::from_slice::<Value>(&session.body)?["events"], 50);
    Ok(())
}

#[test]
fn a_quota_of_sessions_refuses_the_next_one_until_one_has_ended() -> Result<()> {
    let guarded = Guarded::start(&format!("jobs ingest {} sessions=1\n", token("ingest")))?;
    let (mut first, mut second) = (Stream::new(84, 1, 50), Stream::new(85, 1, 50));
    let mut peer = guarded.collector(&mut first, &token("ingest"))?;
    assert!(matches!(peer.frame()?, Message::Welcome(_)));
    let mut refused = guarded.collector(&mut second, &token("ingest"))?;
    match refused.frame()? {
        Message::Refused(refused) => {
            assert_eq!((refused.code, refused.retry), (Code::Busy, true));
            assert!(refused.message.contains("1 live session, which is its quota; try again"), "{}", refused.message);
        }
        other => anyhow::bail!("not refused but {other:?}"),
    }
    // The same session may reconnect.
    let mut peer = {
        drop(peer);
        guarded.collector(&mut first, &token("ingest"))?
    };
    assert!(matches!(peer.frame()?, Message::Welcome(_)));
    peer.end(0)?;
    peer.close();
    let begun = Instant::now();
    loop {
        let mut peer = guarded.collector(&mut second, &token("ingest"))?;
        if matches!(peer.frame()?, Message::Welcome(_)) {
            return Ok(());
        }
        ensure!(begun.elapsed() < Duration::from_secs(5), "an ended session still counts");
    }
}

#[test]
fn a_quota_of_events_slows_a_collector_and_loses_nothing() -> Result<()> {
    let guarded = Guarded::start(&format!(
        "jobs ingest {} events_per_second=1000\nme admin {}\n",
        token("ingest"),
        token("admin")
    ))?;
    for (number, role, is_slow) in [(86, "ingest", true), (87, "admin", false)] {
        let mut stream = Stream::new(number, 5, 500);
        let mut peer = guarded.collector(&mut stream, &token(role))?;
        assert!(matches!(peer.frame()?, Message::Welcome(_)));
        let begun = Instant::now();
        // One after the other, so that the server knows the events of each before the next one comes.
        for seq in 1..=stream.last() {
            peer.batch(seq, stream.batch(seq))?;
            peer.acked(seq)?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        // The first second's worth passes at once; the last batch is not waited for.
        assert_eq!((0.9..5.0).contains(&seconds), is_slow, "{role}: {} events in {seconds} s", stream.events);
    }
    // By requests: the answer comes later. The sockets above left a debt.
    for (number, role, is_slow) in [(91, "ingest", true), (92, "admin", false)] {
        let mut stream = Stream::new(number, 2, 500);
        stream.hello.token = token(role);
        let mut body = Message::Hello(stream.hello.clone()).to_bytes();
        for seq in 1..=2 {
            Message::Batch(Batch { seq, sent_us: 1, chunks: stream.batch(seq) }).encode(&mut body);
        }
        let head = format!(
            "POST /api/v1/ingest HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            guarded.address(),
            body.len()
        );
        let mut socket = TcpStream::connect(guarded.address())?;
        let begun = Instant::now();
        socket.write_all(&[head.as_bytes(), &body].concat())?;
        let response = http::receive(socket)?;
        let (mut acked, seconds) = (0, begun.elapsed().as_secs_f64());
        Decoder::new(&WireLimits::default()).push(&response.body, &mut |message| {
            if let Message::Ack(ack) = message {
                acked = ack.seq;
            }
        })?;
        assert_eq!((response.status, acked), (200, 2), "{role}");
        assert_eq!((0.5..5.0).contains(&seconds), is_slow, "{role}: {} events in {seconds} s", stream.events);
    }
    Ok(())
}
