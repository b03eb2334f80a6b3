//! A server with TLS: who can speak to it, how, and what happens when its certificate changes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use allocator::{TraceEntry, TraceSink};
use anyhow::{Context, Result, ensure};
use format::{Device, Header};
use recorder::publish::{Destination, Publisher, PublisherHandle, PublisherStats};
use recorder::{DualOutput, FileOutput, Recorder, RecorderHandle, RecorderSink};
use tests::server::Server;
use tests::stream::Stream;
use tests::tls::{self, Authority, Middlebox, Pair, Sockets};
use tests::{Folder, http, program};
use trace::event::Action;
use trace::frames::StackId;
use trace::limits::{PublishLimits, RecorderLimits, WireLimits};
use trace::units::{PoolId, Stream as CudaStream};
use wire::{Batch, Decoder, Goodbye, Message};

/// The longest wait for anything.
const LONG: Duration = Duration::from_secs(30);

/// Waits until a condition holds.
fn until(what: &str, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !condition()? {
        ensure!(begun.elapsed() < LONG, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A job that publishes to a server and writes a file beside.
struct Job {
    sink: RecorderSink,
    recorder: RecorderHandle,
    publisher: PublisherHandle,
}

impl Job {
    fn start(destination: Destination, file: &Path) -> Result<Self> {
        let (output, publisher) = Publisher::start(destination, PublishLimits::default())?;
        let output = DualOutput::new(FileOutput::create(file)?, output);
        let device = Device { number: 0, name: "simulated".to_owned(), capacity: 80 << 30 };
        let recorder = Recorder::new(Header { name: "job".to_owned(), devices: vec![device], ..Header::default() });
        let recorder = recorder.limits(RecorderLimits { flush_millis: 5, ..RecorderLimits::default() });
        let (mut sinks, recorder) = recorder.start_to(Box::new(output), "test")?;
        Ok(Self { sink: sinks.pop().context("no sink")?, recorder, publisher })
    }

    fn record(&mut self, count: u64) {
        for i in 0..count {
            let action = [Action::Alloc, Action::FreeRequested, Action::FreeCompleted][(i % 3) as usize];
            let (address, size) = ((1 + i / 3 % 1000) << 21, 512 * (1 + i % 97));
            self.sink.record(TraceEntry {
                action,
                address,
                size,
                stream: CudaStream(0),
                pool: PoolId(0, 0),
                stack: StackId(0),
            });
        }
    }

    /// Waits until everything so far has arrived.
    fn delivered(&self, events: u64) -> Result<PublisherStats> {
        until("delivery", || Ok(self.publisher.stats().events_acked >= events))?;
        Ok(self.publisher.stats())
    }

    fn finish(self) -> PublisherStats {
        self.recorder.finish(Vec::new());
        self.publisher.finish(LONG)
    }
}

#[test]
fn a_collector_over_tls_delivers_a_whole_stream_by_socket_and_by_requests() -> Result<()> {
    let folder = Folder::new("tls")?;
    let authority = Authority::new()?;
    let trusted = authority.write(&folder)?;
    let server = Server::start_encrypted(&folder, &authority, &[])?;
    let client = authority.client()?;
    let blocked = Middlebox::start(&authority.issue()?, server.address(), Some(client.clone()), Sockets::Block)?;
    for (name, address) in [("socket", server.address()), ("post", blocked.address())] {
        let destination = Destination::parse(&format!("https://localhost:{}", address.port()))?;
        let file = folder.join(name);
        let mut job = Job::start(destination.ca_file(Some(trusted.clone())), &file)?;
        let session = job.publisher.session().to_owned();
        for _ in 0..20 {
            job.record(5_000);
            std::thread::sleep(Duration::from_millis(5));
        }
        let stats = job.finish();
        assert!(stats.is_ended && stats.undelivered() == 0, "{name}: {stats:?}");
        assert_eq!((stats.events, stats.is_post), (100_000, name == "post"));
        let download = tls::get(server.address(), &client, &format!("/api/v1/sessions/{session}/trace"), &[])?;
        assert_eq!(download.status, 200);
        assert!(download.body == fs::read(&file)?, "{name}: the download differs from the file");
    }
    Ok(())
}

#[test]
fn a_new_certificate_is_served_and_connections_stay() -> Result<()> {
    let folder = Folder::new("tls-reload")?;
    let authority = Authority::new()?;
    let trusted = authority.write(&folder)?;
    let server = Server::start_encrypted(&folder, &authority, &[])?;
    let client = authority.client()?;
    let first = tls::presented(server.address(), &client)?;
    let destination = Destination::parse(&format!("https://{}", server.address()))?.ca_file(Some(trusted));
    let mut job = Job::start(destination, &folder.join("beside"))?;
    job.record(1_000);
    job.delivered(1_000)?;

    // A key of another pair: the old pair is served, and the log says why.
    let (second, other) = (authority.issue()?, authority.issue()?);
    Pair { certificate: second.certificate.clone(), key: other.key }.write(&folder)?;
    let log = || fs::read_to_string(folder.join("log")).context("no log");
    until("an error", || Ok(log()?.contains("can't be used; the old one stays")))?;
    assert!(log()?.contains("does not belong to the certificate"), "{}", log()?);
    assert_eq!(tls::presented(server.address(), &client)?, first);

    second.write(&folder)?;
    let second = second.der()?;
    until("the new certificate", || Ok(tls::presented(server.address(), &client)? == second))?;
    job.record(1_000);
    let stats = job.delivered(2_000)?;
    assert_eq!((stats.connections, stats.is_connected), (1, true), "{stats:?}");
    assert!(job.finish().is_ended);
    // The certificates of the tests end with the year 2099.
    for (words, count) in [("stays", 1), ("certificate loaded again", 1), ("2100-01-01T00:00:00Z", 2)] {
        assert_eq!(log()?.matches(words).count(), count, "{words}: {}", log()?);
    }
    Ok(())
}

#[test]
fn a_request_without_tls_is_answered_and_tls_to_a_plain_port_is_refused() -> Result<()> {
    let folder = Folder::new("tls-plain")?;
    let authority = Authority::new()?;
    let trusted = authority.write(&folder)?;
    let encrypted = Server::start_encrypted(&folder, &authority, &[])?;
    for request in [
        http::head("GET", encrypted.address(), "/", &[]),
        "POST /api/v1/ingest HTTP/1.1\r\nContent-Length: 100000\r\n\r\n".to_owned() + &"x".repeat(100_000),
        "OPTIONS".to_owned(),
    ] {
        let answer = http::send(encrypted.address(), &request)?;
        assert_eq!((answer.status, answer.header("upgrade")), (426, "TLS/1.2, HTTP/1.1"));
        assert!(answer.text().contains("https://"), "{}", answer.text());
    }
    // What is neither ends.
    let mut socket = TcpStream::connect(encrypted.address())?;
    socket.set_read_timeout(Some(LONG))?;
    socket.write_all(&[0; 100])?;
    let _ = socket.read_to_end(&mut Vec::new());

    let plain = Server::start()?;
    let mut socket = TcpStream::connect(plain.address())?;
    // The beginning of a ClientHello.
    socket.write_all(&[0x16, 3, 1, 0, 0xc8, 1, 0, 0, 0xc4, 3, 3])?;
    assert_eq!(http::receive(socket)?.status, 400);

    // Collectors say what the address should be.
    for (address, want) in [
        (
            format!("http://{}", encrypted.address()),
            format!("expects TLS. Did you mean https://{}/?", encrypted.address()),
        ),
        (
            format!("https://{}", plain.address()),
            format!("does not speak TLS. Did you mean http://{}/?", plain.address()),
        ),
    ] {
        let destination = Destination::parse(&address)?.token(Some("open sesame".to_owned()));
        let job = Job::start(destination.ca_file(Some(trusted.clone())), &folder.join("beside"))?;
        until("an error", || Ok(job.publisher.stats().trouble.is_some()))?;
        let stats = job.publisher.stats();
        let trouble = stats.trouble.unwrap_or_default();
        assert!(trouble.contains(&want) && !stats.is_post, "{trouble}");
    }
    Ok(())
}

#[test]
fn with_tls_browsers_are_kept_on_it_and_pages_of_other_schemes_are_refused() -> Result<()> {
    let folder = Folder::new("tls-headers")?;
    let authority = Authority::new()?;
    let (server, client) = (Server::start_encrypted(&folder, &authority, &[])?, authority.client()?);
    let plain = Server::start()?;
    for path in ["/", "/api/v1/sessions", "/nowhere"] {
        assert_eq!(server.get(path)?.header("strict-transport-security"), "max-age=2592000", "{path}");
        assert_eq!(plain.get(path)?.header("strict-transport-security"), "", "{path}");
    }
    let address = server.address();
    let status = |origin: &str| -> Result<u16> {
        let headers = [("Origin", origin), ("Content-Length", "0")];
        Ok(tls::send(address, &client, http::head("POST", address, "/api/v1/ingest", &headers).as_bytes())?.status)
    };
    assert_eq!(status(&format!("https://{address}"))?, 200);
    assert_eq!(status(&format!("http://{address}"))?, 403);
    assert_eq!(status("https://evil.example")?, 403);
    Ok(())
}

#[test]
fn both_versions_of_tls_are_spoken() -> Result<()> {
    let folder = Folder::new("tls-versions")?;
    let authority = Authority::new()?;
    let server = Server::start_encrypted(&folder, &authority, &[])?;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = authority.client_of(&[version])?;
        let stream = tls::connect(server.address(), &client)?;
        assert_eq!(stream.conn.protocol_version(), Some(version.version));
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(tls::get(server.address(), &client, "/healthz", &[])?.status, 200);
    }
    Ok(())
}

#[test]
fn the_demo_works_with_tls() -> Result<()> {
    let folder = Folder::new("tls-demo")?;
    let authority = Authority::new()?;
    // The certificate need not name the address at which the server reaches itself.
    let pair = authority.issue_for(&[tls::NAME], 2100)?;
    let server = Server::start_presenting(&folder, &authority, &pair, &[])?;
    let client = authority.client()?;
    let request = http::head("POST", server.address(), "/api/v1/demo", &[("Content-Length", "0")]);
    let answer = tls::send(server.address(), &client, request.as_bytes())?;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let session: serde_json::Value = serde_json::from_slice(&answer.body)?;
    let path = format!("/api/v1/sessions/{}", session["id"].as_str().context("no id")?);
    until("events", || {
        let session: serde_json::Value = serde_json::from_slice(&server.get(&path)?.body)?;
        Ok(session["events"].as_u64() > Some(0))
    })
}

#[test]
fn unusable_files_are_errors_that_say_what_to_do() -> Result<()> {
    let folder = Folder::new("tls-files")?;
    let authority = Authority::new()?;
    let (pair, other) = (authority.issue()?, authority.issue()?);
    let write = |name: &str, text: &str, mode: u32| -> Result<String> {
        let path = folder.join(name);
        fs::write(&path, text)?;
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        let _ = mode;
        Ok(path.to_str().context("a path that is no text")?.to_owned())
    };
    let certificate = write("certificate.pem", &pair.certificate, 0o644)?;
    let key = write("key.pem", &pair.key, 0o600)?;
    let empty = write("empty.pem", "", 0o600)?;
    let torn = write("torn.pem", "-----BEGIN CERTIFICATE-----\nnot base64 !\n-----END CERTIFICATE-----\n", 0o600)?;
    let garbage = write("garbage.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", 0o600)?;
    let open = write("open.pem", &pair.key, 0o644)?;
    let wrong = write("wrong.pem", &other.key, 0o600)?;
    let locked = pair.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let locked = write("locked.pem", &locked, 0o600)?;
    let none = folder.join("none").to_str().context("a path that is no text")?.to_owned();
    // The two files; words of the error.
    let mut cases = vec![
        (&none, &key, vec!["none can't be read", "No such file"]),
        (&empty, &key, vec!["empty.pem contains no certificate", "--tls-cert"]),
        (&key, &key, vec!["key.pem contains no certificate"]),
        (&torn, &key, vec!["torn.pem can't be read"]),
        (&garbage, &key, vec!["garbage.pem can't be used"]),
        (&certificate, &none, vec!["none can't be read", "No such file"]),
        (&certificate, &empty, vec!["empty.pem contains no private key", "--tls-key"]),
        (&certificate, &locked, vec!["needs a password", "openssl pkey"]),
        (&certificate, &wrong, vec!["wrong.pem does not belong to the certificate in"]),
    ];
    if cfg!(unix) {
        cases.push((&certificate, &open, vec!["every user", "chmod 600"]));
    }
    for (certificate, key, words) in cases {
        let files = ["--tls-cert", certificate.as_str(), "--tls-key", key];
        let data = folder.join("data");
        let data = ["--data", data.to_str().context("a path that is no text")?];
        let output = program::run(&[&["serve", "--listen", "127.0.0.1:0"], &data[..], &files].concat())?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && output.stdout.is_empty() && error.lines().count() == 1, "{error}");
        for word in words {
            assert!(error.contains(word), "{word:?} is not in {error:?}");
        }
    }
    for one in [["--tls-cert", &certificate], ["--tls-key", &key]] {
        let output = program::run(&[&["serve"], &one[..]].concat())?;
        assert_eq!(output.status.code(), Some(2));
    }
    Ok(())
}

#[test]
fn a_run_speaks_tls_and_names_an_authority_that_it_does_not_know() -> Result<()> {
    let folder = Folder::new("tls-run")?;
    let authority = Authority::new()?;
    let trusted = authority.write(&folder)?;
    let trusted = trusted.to_str().context("a path that is no text")?;
    let server = Server::start_encrypted(&folder, &authority, &[])?;
    let url = server.url();
    let run = ["run", "alternating", "--rate", "0", "--json", "--to", &url];
    let output = program::run(&[&run[..], &["--ca-file", trusted]].concat())?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && error.contains(&format!("Watch it at {url}#session=")), "{error}");

    // The system's authorities, which variables of OpenSSL may name.
    let system = |file: &str| -> Result<(bool, String)> {
        let mut run_again = std::process::Command::new(program::path()?);
        run_again.args(run).env("SSL_CERT_FILE", file).env_remove("SSL_CERT_DIR").env_remove("VRAMSCOPE_CA_FILE");
        let output = run_again.output()?;
        Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    let (is_known, error) = system(trusted)?;
    assert!(is_known, "{error}");
    let (is_known, error) = system("/dev/null")?;
    assert!(!is_known && error.contains("no certificates of authorities") && error.contains("--ca-file"), "{error}");

    let stranger = Folder::new("tls-stranger")?;
    let stranger = Authority::new()?.write(&stranger)?;
    let mut run = std::process::Command::new(program::path()?);
    let output =
        run.args(["run", "alternating", "--rate", "0", "--to", &url]).env("VRAMSCOPE_CA_FILE", stranger).output()?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("not issued by an authority in"), "{error}");
    Ok(())
}

#[test]
fn only_a_trusted_proxy_is_believed() -> Result<()> {
    let foreign = [("X-Forwarded-Host", "evil.example")];
    let public =
        [("X-Forwarded-Host", "box.example"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "203.0.113.7")];
    let folder = Folder::new("proxy")?;
    let token = folder.join("token");
    fs::write(&token, "correct-horse-battery-staple")?;
    #[cfg(unix)]
    fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let token = ["--token-file", token.to_str().context("a path that is no text")?];
    let page = [&public[..], &[("Origin", "https://box.example"), ("Content-Length", "0")]].concat();
    let plain_page = [&public[..], &[("Origin", "http://box.example"), ("Content-Length", "0")]].concat();
    // The server's arguments; the answers to a foreign name, to a page of the public name, and to one without https.
    for (arguments, want) in [
        (vec![], [200, 403, 403]),
        (vec!["--behind-proxy", "10.0.0.1"], [200, 403, 403]),
        (vec!["--behind-proxy", "10.0.0.1,127.0.0.0/8"], [421, 200, 403]),
    ] {
        let server = Server::start_with(&[&["--host", "box.example"], &token[..], &arguments[..]].concat())?;
        let address = server.address();
        let post = |headers: &[(&str, &str)]| -> Result<u16> {
            Ok(http::send(address, &http::head("POST", address, "/api/v1/ingest", headers))?.status)
        };
        let found = [http::get(address, "/healthz", &foreign)?.status, post(&page)?, post(&plain_page)?];
        assert_eq!(found, want, "{arguments:?}");
    }
    for (networks, word) in
        [("0.0.0.0/0", "every address"), ("proxy.example", "not an address"), ("", "not an address")]
    {
        let output = program::run(&["serve", "--behind-proxy", networks])?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(word), "{error}");
    }
    // A proxy does not replace the token, not even on loopback.
    for listen in ["0.0.0.0:0", "127.0.0.1:0"] {
        let output = program::run(&["serve", "--listen", listen, "--behind-proxy", "127.0.0.1"])?;
        assert!(String::from_utf8_lossy(&output.stderr).contains("needs a token"));
    }
    Ok(())
}

#[test]
fn messages_in_a_request_over_tls_are_stored_as_sent() -> Result<()> {
    let folder = Folder::new("tls-post")?;
    let authority = Authority::new()?;
    let (server, client) = (Server::start_encrypted(&folder, &authority, &[])?, authority.client()?);
    // Larger than the buffers of sockets and of TLS together.
    let stream = Stream::new(90, 40, 20_000);
    let mut body = Message::Hello(stream.hello.clone()).to_bytes();
    for seq in 1..=stream.last() {
        Message::Batch(Batch { seq, sent_us: 1, chunks: stream.batch(seq) }).encode(&mut body);
    }
    Message::Goodbye(Goodbye { seq: stream.last() }).encode(&mut body);
    let length = body.len().to_string();
    let head = http::head("POST", server.address(), "/api/v1/ingest", &[("Content-Length", &length)]);
    let answer = tls::send(server.address(), &client, &[head.as_bytes(), &body].concat())?;
    let mut acked = 0;
    Decoder::new(&WireLimits::default()).push(&answer.body, &mut |message| {
        if let Message::Ack(ack) = message {
            acked = ack.seq;
        }
    })?;
    assert_eq!(acked, stream.last());
    let download = server.get(&format!("/api/v1/sessions/{}/trace", stream.session()))?;
    assert!(download.body == stream.file, "the download differs");
    Ok(())
}
